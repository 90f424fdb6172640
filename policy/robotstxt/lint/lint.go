// Package lint finds the lines of a robots.txt that do not do what their author probably
// meant, and corrects those whose correction changes no decision. [Check] returns the
// findings, [Fix] the corrected file.
package lint

// Where to change what.
//
//	what is reported   line.go or another file of this package, and a case in testdata
//	what is corrected  a call of linter.correct. A correction must change no decision: TestRealFiles and FuzzFix
//	                   check that

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// A Finding is a line of a robots.txt that does not do what its author probably meant.
type Finding struct {
	Line int // 1-based
	Rank Rank
	Text string // a sentence; printable
}

// A Rank says how much a finding matters. The lowest matters most.
type Rank int

const (
	Decisions Rank = iota // crawlers may fetch, or use, something else than the author probably meant
	Crawlers              // the line is not read alike by all crawlers, or ignored without harm
	Taste                 // the line does what it says, but could be shorter or missing
)

// String returns the rank as one word.
func (r Rank) String() string {
	return [...]string{"decisions", "crawlers", "taste"}[r]
}

const (
	// leastLimit is what every crawler must read, in bytes (RFC 9309, 2.5).
	leastLimit = 500 << 10

	maxAlike  = 20  // findings of one kind; the last says how many more there are
	maxQuoted = 80  // bytes of what the file says, repeated in a finding
	maxShown  = 400 // bytes of a corrected line in a finding
)

// Check reports the lines of a robots.txt that do not do what their author probably
// meant, those of the lowest rank first, and in the order of lines. What is correct but useless
// counts too: a rule that never decides, a wildcard that matches nothing more. All findings of a line
// have the same rank: the others can wait, and may no longer be true when those are seen to.
//
// A finding that ends in "write" and a line says what [Fix] writes. All others say what would
// change.
//
// Check reads limit bytes at most; zero stands for the 500 KiB that every crawler must
// read. There are never more than a thousand findings, however long the file is.
func Check(data []byte, limit int) []Finding {
	if limit <= 0 {
		limit = leastLimit
	}
	return check(data, limit).weightiest()
}

// check returns a linter that has read the file.
func check(data []byte, limit int) *linter {
	f := syntax.Decode(data, limit)
	l := &linter{
		file:    f,
		alike:   map[string]*alike{},
		byNames: map[string]*section{},
		tokens:  map[string]*token{},
		keys:    map[string]bool{},
	}
	if l.whole(data, limit) {
		s := f.Scan()
		for s.NextLine() {
			l.line(&s)
		}
		l.cut(data, limit)
		l.finish(data, limit)
	}
	return l
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
//	fix.go        the corrections that change no decision
type linter struct {
	file     syntax.Text
	findings []found
	alike    map[string]*alike // by format
	edits    []edit            // in the order of the text
	spelling *correction       // of the line being read; nil if it needs none

	html    bool            // the file is a page, whose other lines are not reported
	nulLine int             // the last line with a NUL
	keys    map[string]bool // other parsers' keys that have been reported, in lower case

	began     bool                // there has been a User-agent line
	open      bool                // more User-agent lines would belong to the group
	run       []*token            // named by the User-agent lines that are open
	runLine   int                 // the first of these lines
	lastLine  int                 // and the last
	separated bool                // below the last of them is a line that looks like the end of the group
	joined    [][2]int            // User-agent lines of the open group, and the next ones, that are separated
	states    bool                // the group has a Crawl-delay, a usage preference or a licence
	licenses  []int               // License lines below the last User-agent, Allow or Disallow
	here      *section            // of the group, once it is not open
	byNames   map[string]*section // by the tokens that it is for
	sections  []*section
	tokens    map[string]*token // in lower case
	ordered   []*token          // in the order of the file
	work      int               // see maxLintWork
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
type alike struct {
	n    int
	last int // index of the last one that is returned, or -1
}

// found is a finding and the others like it.
type found struct {
	Finding
	alike *alike
}

// report adds a finding. Those of one format are alike.
func (l *linter) report(rank Rank, line int, format string, args ...any) {
	a := l.alike[format]
	if a == nil {
		a = &alike{last: -1}
		l.alike[format] = a
	}
	if a.n++; a.n > maxAlike {
		return
	}
	l.findings = append(l.findings, found{Finding{line, rank, fmt.Sprintf(format, args...)}, a})
}

// weightiest returns of each line the findings of the lowest rank.
func (l *linter) weightiest() (list []Finding) {
	slices.SortStableFunc(l.findings, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Line, b.Line))
	})
	lowest := map[int]Rank{}
	for _, f := range l.findings {
		if rank, seen := lowest[f.Line]; seen && rank < f.Rank {
			continue
		}
		lowest[f.Line] = f.Rank
		f.alike.last = len(list)
		list = append(list, f.Finding)
	}
	for _, a := range l.alike {
		if more := a.n - maxAlike; more > 0 && a.last >= 0 {
			list[a.last].Text += fmt.Sprintf(" (and %d more like this)", more)
		}
	}
	return list
}

// quote returns what the file says in a form that no terminal obeys. Characters that can be seen
// stay as they are, a backslash too.
func quote(s string) string {
	more := ""
	if n := maxQuoted; len(s) > n {
		for n > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		more = fmt.Sprintf(" (and %d bytes more)", len(s)-n)
		s = s[:n]
	}
	b := []byte{'"'}
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && r != utf8.RuneError {
			b = append(b, s[:n]...)
		} else {
			escaped := strconv.Quote(s[:n])
			b = append(b, escaped[1:len(escaped)-1]...)
		}
		s = s[n:]
	}
	return string(b) + `"` + more
}
