// Package lint finds the lines of a robots.txt that do not do what their author probably
// meant. [Check] returns them.
package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// A Finding is a line of a robots.txt that does not do what its author probably meant.
type Finding struct {
	Line int    // 1-based
	Text string // a sentence: what is wrong, and what to write instead; printable
}

const (
	// leastLimit is what every crawler must read, in bytes (RFC 9309, 2.5).
	leastLimit = 500 << 10

	maxAlike  = 20 // findings of one kind; the last says how many more there are
	maxQuoted = 80 // bytes of what the file says, repeated in a finding
)

// Check reports every line of a robots.txt that does not do what its author probably
// meant, in the order of lines. What is correct but useless counts too: a rule that
// never decides, a wildcard that matches nothing more.
//
// It reads limit bytes at most; zero stands for the 500 KiB that every crawler must
// read. There are never more than a thousand findings, however long the file is.
func Check(data []byte, limit int) []Finding {
	if limit <= 0 {
		limit = leastLimit
	}
	f := syntax.Decode(data, limit)
	l := linter{
		file:    f,
		alike:   map[string]*alike{},
		byNames: map[string]*section{},
		tokens:  map[string]*token{},
		keys:    map[string]bool{},
		delays:  map[string]*delay{},
	}
	if l.whole(data, limit) {
		s := f.Scan()
		for s.NextLine() {
			l.line(&s)
		}
		l.cut(data, limit)
		l.finish()
	}
	for _, a := range l.alike {
		if more := a.n - maxAlike; more > 0 {
			l.findings[a.last].Text += fmt.Sprintf(" (and %d more like this)", more)
		}
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int { return a.Line - b.Line })
	return l.findings
}

// A linter reads a file as robotstxt.Parse does, and collects findings:
//
//	lint.go       the findings, and how many are reported
//	file.go       the file as a whole
//	line.go       a line: its key, its colon, its comment
//	agent.go      User-agent lines, and the groups they begin
//	value.go      Sitemap and Crawl-delay
//	usage.go      Content-Usage, Content-Signal and License
//	pattern.go    a rule by itself
//	redundant.go  a rule among the others of its group
//	group.go      a group among the others
type linter struct {
	file     syntax.Text
	findings []Finding
	alike    map[string]*alike // by format

	html    bool            // the file is a page, whose other lines are not reported
	nulLine int             // the last line with a NUL
	keys    map[string]bool // other parsers' keys that have been reported, in lower case

	began     bool                // there has been a User-agent line
	open      bool                // more User-agent lines would belong to the group
	run       []*token            // named by the User-agent lines that are open
	runLine   int                 // the first of these lines
	lastLine  int                 // and the last
	separated bool                // below the last of them is a line that looks like the end of the group
	states    bool                // the group has a usage preference, a licence or a Crawl-delay
	licenses  []int               // License lines below the last User-agent, Allow or Disallow
	here      *section            // of the group, once it is not open
	byNames   map[string]*section // by the tokens that it is for
	sections  []*section
	tokens    map[string]*token // in lower case
	ordered   []*token          // in the order of the file

	above      []string          // named by the User-agent lines directly above, in lower case
	aboveEnded bool              // another record stands below these lines
	largest    *delay            // of these crawlers; nil before their first one
	delays     map[string]*delay // all of these, by the names above them

	work int // see maxLintWork
}

// A token is one that some User-agent line names, or "*".
type token struct {
	name     string // as first written
	line     int    // where it was first named
	runLine  int    // where the last run of User-agent lines that names it begins
	sections []*section
}

// A section is the rules of all groups that are for the same crawlers.
type section struct {
	rules  []lintRule
	open   bool // its author meant to allow: it has an empty Disallow, or nothing else
	shared bool // one of its crawlers has other sections besides
}

// alike counts findings that differ in details only.
type alike struct{ n, last int }

// report adds a finding. Those of one format are alike.
func (l *linter) report(line int, format string, args ...any) {
	a := l.alike[format]
	if a == nil {
		a = &alike{}
		l.alike[format] = a
	}
	if a.n++; a.n > maxAlike {
		return
	}
	a.last = len(l.findings)
	l.findings = append(l.findings, Finding{Line: line, Text: fmt.Sprintf(format, args...)})
}

// quote returns what the file says in a form that no terminal obeys.
func quote(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return strconv.Quote(s)
}
