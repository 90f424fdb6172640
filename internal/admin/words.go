package admin

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"robotsgate/internal/logtext"
	"robotsgate/policy"
)

// words are the functions of the templates.
var words = template.FuncMap{
	"ago":       ago,
	"ahead":     ahead,
	"bytes":     byteCount,
	"cause":     func(kind string) string { return cmp.Or(causes[kind], kind) },
	"clock":     func(t time.Time) string { return t.UTC().Format("15:04") },
	"cut":       cut,
	"date":      func(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" },
	"cutAt":     cutAt,
	"full":      full,
	"inURL":     inURL,
	"lasted":    lasted,
	"list":      func(words []string) string { return strings.Join(words, ", ") },
	"number":    number,
	"origin":    func(robots string) string { return strings.TrimSuffix(robots, "/robots.txt") },
	"printable": logtext.Printable,
	"rate":      rate,
	"stamp":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"why":       func(r policy.Reason) string { return cmp.Or(reasons[r], string(r)) },
}

// maxText bounds a text from the network on the page, in characters.
const maxText = 200

// cut makes a text from the network short and printable. html/template escapes it.
func cut(s string) string { return cutAt(maxText, s) }

// cutAt is cut with another bound.
func cutAt(bound int, s string) string {
	runes := []rune(logtext.Printable(s[:min(len(s), 4*bound)]))
	if len(runes) <= bound && len(s) <= 4*bound {
		return string(runes)
	}
	return string(runes[:min(len(runes), bound)]) + "…"
}

// inURL makes a URL printable, without changing its meaning.
func inURL(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(url.PathEscape(string(r)))
		}
	}
	return b.String()
}

// number groups an integer's digits.
func number(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // a narrow no-break space
	}
	return s
}

func rate(perSecond float64) string {
	switch {
	case perSecond == 0 || perSecond >= 100:
		return number(int64(perSecond + 0.5))
	case perSecond < 0.1:
		return "< 0.1"
	}
	return strconv.FormatFloat(perSecond, 'f', 1, 64)
}

func byteCount(n int64) string {
	size, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	if unit == "B" || size >= 100 || size == float64(int64(size)) {
		return fmt.Sprintf("%.0f\u00a0%s", size, unit)
	}
	return fmt.Sprintf("%.1f\u00a0%s", size, unit)
}

// full returns the used part of a bound, in percent.
func full(s Size) int {
	if s.Bound <= 0 || s.Bytes <= 0 {
		return 0
	}
	return int(min(max(100*float64(s.Bytes)/float64(s.Bound), 1), 100))
}

func ago(now, t time.Time) string {
	if d := now.Sub(t); d >= time.Second {
		return lasted(int64(d/time.Second)) + " ago"
	}
	return "just now"
}

// ahead describes when a robots.txt is fetched again, which only a request causes.
func ahead(now, t time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "by a request in " + lasted(int64((d+time.Second-1)/time.Second)) + " or later"
	}
	return "by the next request"
}

// lasted describes a number of seconds by its two largest units.
func lasted(seconds int64) string {
	for _, u := range []struct {
		of, part       int64
		name, partName string
	}{{86400, 3600, "d", "h"}, {3600, 60, "h", "min"}, {60, 1, "min", "s"}} {
		n, rest := seconds/u.of, seconds%u.of/u.part
		if n >= 10 || n > 0 && rest == 0 {
			return fmt.Sprintf("%d\u00a0%s", n, u.name)
		}
		if n > 0 {
			return fmt.Sprintf("%d\u00a0%s %d\u00a0%s", n, u.name, rest, u.partName)
		}
	}
	return fmt.Sprintf("%d\u00a0s", seconds)
}

// reasons explain policy.Explanation.Reason in a sentence.
var reasons = map[policy.Reason]string{
	policy.ByRule:        "The longest matching rule decides; of equally long rules, an Allow.",
	policy.NoMatch:       "No rule of the group matches.",
	policy.NoGroup:       "The robots.txt has no group for this crawler.",
	policy.Implicit:      "A crawler may always fetch the robots.txt itself.",
	policy.ByOverride:    "An override of the operator decides, instead of the robots.txt.",
	policy.IsUnavailable: "The robots.txt is unavailable, so crawlers may fetch everything.",
	policy.IsUnreachable: "The robots.txt is unreachable, so crawlers may fetch nothing.",
	policy.ByUsage:       "The origin reserves a use that this crawler fetches for.",
	policy.TooComplex:    "Comparing all rules with this URL would take too many steps, so it is denied.",
}

// causes explain Cause.Kind in a few words.
var causes = map[string]string{
	"guard":     "refused: prohibited destination",
	"login":     "refused: unknown client",
	"limit":     "refused: limit reached",
	"audit":     "refused: audit log failing",
	"malformed": "refused: malformed",
	"failed":    "failed",
}
