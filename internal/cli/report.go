package cli

import (
	"fmt"
	"strings"

	"robotsgate/internal/config"
	"robotsgate/internal/escape"
	"robotsgate/policy"
)

const (
	around  = 2  // lines of a robots.txt shown before and after a rule
	maxLost = 10 // rules shown that match, but not with the longest pattern
)

// report returns a decision and its evidence, for people.
func report(url string, t policy.Target, d *policy.Decision) string {
	var b strings.Builder
	verb := "deny "
	if d.Allow {
		verb = "allow"
	}
	fmt.Fprintf(&b, "%s %s\n", verb, escape.Printable(url))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-7s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	e := d.Evidence(url)
	if d.Crawler != nil && d.Crawler.Name != config.DefaultCrawler().Name {
		line("asks", "%s", escape.Printable(d.Crawler.Name))
	}
	if !d.Allow && !d.Enforced {
		line("mode", "report: it would be denied; the gate marks it and sends it on")
	}
	if e.ReadAs != "" {
		line("read as", "%s, as common servers read it", escape.Printable(e.ReadAs))
	}
	line("rule", "%s", why(d, &e))
	if e.Rule != nil {
		excerpt(&b, d.Robots.File.Body(), e.Rule.Line)
	}
	also := d.Lost(t)
	for _, r := range also[:min(len(also), maxLost)] {
		line("lost", "line %d: %s", r.Line, escape.Printable(r.Text))
	}
	if more := len(also) - maxLost; more > 0 {
		line("lost", "and %d more", more)
	}
	if e.Group != "" {
		line("group", "%s", e.Group)
	}
	if d.Token != "" {
		line("token", "%s", escape.Printable(d.Token))
	}
	if e.CrawlDelay != nil {
		line("delay", "%v s", *e.CrawlDelay)
	}
	if e.Robots != nil {
		line("source", "%s", source(d, e.Robots))
		if e.Robots.SHA256 != "" {
			line("sha256", "%s", e.Robots.SHA256)
		}
	}
	return b.String()
}

// reasons are the reasons that need no further words.
var reasons = map[policy.Reason]string{
	policy.NoMatch:       "none of the group matches",
	policy.NoGroup:       "no group is for this crawler",
	policy.Implicit:      "robots.txt itself is always allowed",
	policy.IsUnavailable: "there is no robots.txt, so everything is allowed",
	policy.TooComplex:    "comparing all rules with this URL takes more steps than a decision may, so it is denied",
}

// why returns the reason, for people.
func why(d *policy.Decision, e *policy.Evidence) string {
	switch d.Reason {
	case policy.ByRule:
		return fmt.Sprintf("line %d: %s", e.Rule.Line, escape.Printable(e.Rule.Text))
	case policy.ByOverride:
		return "the operator's override: " + escape.Printable(d.Note)
	case policy.IsUnreachable:
		return "robots.txt is unreachable, so nothing is allowed: " + escape.Printable(e.Robots.Error)
	}
	return reasons[d.Reason]
}

// source returns where the rules came from: a file, or the origin.
func source(d *policy.Decision, r *policy.RobotsEvidence) string {
	if d.URL == "-" {
		return "standard input"
	}
	if !strings.Contains(d.URL, "://") {
		return escape.Printable(d.URL)
	}
	status := "no answer"
	if r.Status != 0 {
		status = fmt.Sprintf("status %d", r.Status)
	}
	return fmt.Sprintf("%s, %s, %s", escape.Printable(d.URL), status, r.State)
}

// excerpt shows a line of a robots.txt with the lines around it.
func excerpt(b *strings.Builder, body string, line int) {
	if strings.ContainsRune(body, 0) {
		return // UTF-16, or broken
	}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body), "\n")
	for n := max(line-around, 1); n <= min(line+around, len(lines)); n++ {
		if n == len(lines) && lines[n-1] == "" {
			break // after the last line break
		}
		mark := " "
		if n == line {
			mark = ">"
		}
		text := fmt.Sprintf("        %s %4d  %s", mark, n, escape.Printable(lines[n-1]))
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
}
