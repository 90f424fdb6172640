package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/policy/robotstxt"
)

// A chart shows requests by day or month, as bars in an area with a height of 120, 10 wide each.
type chart struct {
	Unit string // day or month
	Max  int    // the requests that the height stands for
	Bars []bar
}

type bar struct {
	audit.Count
	Name  string
	X     int
	Parts []part
}

type part struct{ Class, Y, H string }

const (
	chartHeight = 120
	barWidth    = 10
	maxDays     = 92
	maxBars     = 240
)

// draw draws the days. Days without a request in between count too.
func draw(days map[string]*audit.Count) (c chart) {
	names := slices.Sorted(maps.Keys(days))
	if len(names) == 0 {
		return c
	}
	c.Unit = "day"
	layout, next := time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	from, err := time.Parse(layout, names[0])
	to, err2 := time.Parse(layout, names[len(names)-1])
	if err != nil || err2 != nil {
		return c // a year of five digits
	}
	if to.Sub(from) > maxDays*24*time.Hour {
		c.Unit = "month"
		layout, next = "2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
		from = time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC)
		months := map[string]*audit.Count{}
		for name, d := range days {
			month := name[:len(layout)]
			if months[month] == nil {
				months[month] = &audit.Count{}
			}
			months[month].Sum(d)
		}
		days = months
	}
	for t := from; !t.After(to) && len(c.Bars) < maxBars; t = next(t) {
		b := bar{Name: t.Format(layout)}
		if d := days[b.Name]; d != nil {
			b.Count = *d
		}
		c.Max = max(c.Max, b.Requests)
		c.Bars = append(c.Bars, b)
	}
	c.Max = roundUp(c.Max)
	for i := range c.Bars {
		c.Bars[i].place(i, c.Max)
	}
	return c
}

// place sets where a bar and its parts are: refused requests at the bottom, where small numbers can be compared.
func (b *bar) place(i, most int) {
	b.X = i*barWidth + 1
	top := float64(chartHeight)
	for _, p := range []struct {
		class string
		n     int
	}{{"refused", b.AllRefused()}, {"reported", b.Reported}, {"allowed", b.Allowed}, {"undecided", b.Undecided()}} {
		if p.n == 0 {
			continue
		}
		height := min(max(float64(chartHeight)*float64(p.n)/float64(most), 2), top) // 2: so that it can be seen
		top -= height
		b.Parts = append(b.Parts, part{p.class, decimal(top), decimal(height)})
	}
}

// Ticks returns the names under the chart: the first, one in the middle and the last.
func (c *chart) Ticks() []string {
	n := len(c.Bars)
	if n == 0 {
		return nil
	}
	return slices.Compact([]string{c.Bars[0].Name, c.Bars[n/2].Name, c.Bars[n-1].Name})
}

// Width returns the width of the area.
func (c *chart) Width() int { return barWidth * len(c.Bars) }

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// roundUp returns the next of 1, 2, 4, 5, 10, 20 and so on.
func roundUp(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, m := range []int{1, 2, 4, 5} {
			if m*unit >= n {
				return m * unit
			}
		}
	}
}

// number returns a whole number with a narrow space before each three digits.
func number(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// show chooses the lines that the report shows of the file.
func (v *version) show(body string) {
	lines := robotstxt.Lines(body)
	v.Total = len(lines)
	near := map[int]bool{}
	for _, line := range slices.Sorted(maps.Keys(v.used)) {
		if len(near) >= maxShownLines {
			break
		}
		for i := line - 3; i <= line+3; i++ {
			near[i] = true
		}
	}
	gap := false
	for i, text := range lines {
		n := i + 1
		if len(lines) > wholeFile && !near[n] {
			if !gap {
				v.Lines = append(v.Lines, fileLine{Gap: true})
			}
			gap = true
			continue
		}
		gap = false
		v.Lines = append(v.Lines, fileLine{Number: n, Text: text, Use: v.used[n]})
	}
}

// link returns the reference to a line that the report shows, empty if it shows none.
func (v *version) link(line int) string {
	if line > 0 && slices.ContainsFunc(v.Lines, func(l fileLine) bool { return l.Number == line }) {
		return fmt.Sprintf("#v%d-%d", v.Number, line)
	}
	return fmt.Sprintf("#v%d", v.Number)
}
