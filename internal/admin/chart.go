package admin

import (
	"fmt"
	"time"

	"robotsgate/internal/overview"
)

// A chart is the last hour as bars, one a minute, in a field of 600 by 100: what was
// denied at the bottom, where the smallest can be seen and compared.
type chart struct {
	Most uint64 // what the field's height stands for
	Bars []bar
	Hour overview.Counts
	Peak uint64
	When time.Time // of Peak
}

type bar struct {
	Title string
	X     int
	Parts []part
}

type part struct {
	Class     string
	Y, Height string
}

// visible is the least height of what is there at all.
const visible = 1.5

func draw(minutes []overview.Minute) (c chart) {
	for _, m := range minutes {
		n := m.Allowed + m.Denied + m.Reported
		if n > c.Peak {
			c.Peak, c.When = n, m.Begin
		}
		c.Hour.Allowed += m.Allowed
		c.Hour.Denied += m.Denied
		c.Hour.Reported += m.Reported
	}
	c.Most = round(c.Peak)
	for i, m := range minutes {
		b := bar{X: i * 10, Title: fmt.Sprintf("%s UTC: %d allowed, %d denied", m.Begin.Format("15:04"), m.Allowed, m.Denied)}
		if m.Reported > 0 {
			b.Title += fmt.Sprintf(", %d reported", m.Reported)
		}
		top := 100.0
		for _, p := range []struct {
			class string
			n     uint64
		}{{"denied", m.Denied}, {"reported", m.Reported}, {"allowed", m.Allowed}} {
			if p.n == 0 {
				continue
			}
			height := min(max(100*float64(p.n)/float64(c.Most), visible), top)
			top -= height
			b.Parts = append(b.Parts, part{p.class, fmt.Sprintf("%.2f", top), fmt.Sprintf("%.2f", height)})
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// round returns the next number that is easy to read, and so is its half.
func round(n uint64) uint64 {
	for ten := uint64(1); ; ten *= 10 {
		for _, m := range []uint64{2, 4, 6, 8, 10} {
			if m*ten >= n || m*ten > 1<<60 {
				return m * ten
			}
		}
	}
}

// Half is the middle of the field.
func (c chart) Half() uint64 { return c.Most / 2 }
