package lint

import (
	"slices"
	"strings"

	"robotsgate/internal/spelling"
	"robotsgate/policy/robotstxt/internal/syntax"
	"robotsgate/policy/usage"
)

// preferences look at the lines that say what content may be used for, by their keys in lower case.
// Which statements are read is decided by package usage.
var preferences = map[string]func(l *linter, s *syntax.Scanner){
	"content-usage": func(l *linter, s *syntax.Scanner) {
		l.statement(s, vocabulary{usage.ContentUsage, "Content-Usage", "y", "n"})
	},
	"content-signal": func(l *linter, s *syntax.Scanner) {
		l.statement(s, vocabulary{usage.ContentSignal, "Content-Signal", "yes", "no"})
	},
	"license": (*linter).license,
}

// A vocabulary has the words of a kind of statement.
type vocabulary struct {
	source       usage.Source
	key, yes, no string
}

// statement looks at a Content-Usage or Content-Signal line.
func (l *linter) statement(s *syntax.Scanner, v vocabulary) {
	if !l.began {
		l.report(Decisions, s.Line, "the %s stands before the first User-agent line, so it binds no crawler; below one, it would bind that crawler", v.key)
	}
	line, ok := usage.ParseLine(v.source, s.Value)
	if !ok {
		l.unreadable(s, v)
		return
	}
	if line.Path == "" && len(line.Members) == 0 {
		l.report(Decisions, s.Line, "the %s states nothing; a member such as train-ai=%s would state something", v.key, v.no)
	}
	if v.source == usage.ContentUsage && len(line.Members) > 0 && !slices.ContainsFunc(line.Members, v.matters) {
		l.report(Decisions, s.Line, "no member of the line has the value %s or %s, so it states nothing; a member such as train-ai=%s would state something", v.yes, v.no, v.no)
		return
	}
	for _, m := range line.Members {
		if known := slices.Contains(usage.Labels(), m.Label); !known {
			if label := nearestLabel(m.Label); label != "" {
				l.report(Decisions, s.Line, "%s is no category, so it reserves and permits nothing; %s is one, and would", quote(m.Label), label)
			}
			continue
		}
		value := m.Value
		if v.source == usage.ContentSignal {
			value = strings.ToLower(value)
		}
		if value == v.yes || value == v.no {
			continue
		}
		if right := v.value(m.Value); right != "" {
			l.report(Decisions, s.Line, "%s has neither %s nor %s for %s, so it says nothing about that; %s would", v.key, v.yes, v.no, m.Label, m.Label+"="+right)
		} else {
			l.report(Decisions, s.Line, "%s has neither %s nor %s for %s, so it says nothing about that; one of them would", v.key, v.yes, v.no, m.Label)
		}
	}
}

// matters reports whether a member states something, or has a label that statement reports on.
func (v vocabulary) matters(m usage.Member) bool {
	return m.Value == v.yes || m.Value == v.no || slices.Contains(usage.Labels(), m.Label) || nearestLabel(m.Label) != ""
}

// unreadable reports a line that states nothing at all.
func (l *linter) unreadable(s *syntax.Scanner, v vocabulary) {
	path, statement := "", s.Value
	if strings.HasPrefix(statement, "/") {
		path, statement, _ = strings.Cut(statement, " ")
		path += " "
	}
	right, ok := v.repaired(statement)
	switch {
	case strings.HasPrefix(s.Value, "*"):
		l.report(Decisions, s.Line, "the path of a %s begins with /, so the line states nothing; with / in front it would", v.key)
	case ok:
		l.report(Decisions, s.Line, "the line is not read, since one mistake spoils all of it; %s would be read", quote(path+right))
	case v.source == usage.ContentUsage:
		l.report(Decisions, s.Line, "the line is no Dictionary of RFC 9651, so it states nothing; members such as train-ai=n, separated by commas, would")
	default:
		l.report(Decisions, s.Line, "no member of the line has the form label=value, so it states nothing; members such as ai-train=no, separated by commas, would")
	}
}

// repaired returns a statement that says what the author of another probably meant.
func (v vocabulary) repaired(statement string) (right string, ok bool) {
	var members []string
	for m := range strings.SplitSeq(strings.ToLower(statement), ",") {
		if m = strings.Trim(m, syntax.Space+";"); m == "" {
			continue
		}
		label, value, _ := strings.Cut(m, "=")
		if label = strings.Trim(label, syntax.Space+`"`); !slices.Contains(usage.Labels(), label) {
			return "", false
		}
		value = v.value(strings.Trim(value, syntax.Space+`"`))
		if value == "" {
			return "", false
		}
		members = append(members, label+"="+value)
	}
	return strings.Join(members, ", "), len(members) > 0
}

// value returns the word that another probably stands for; "" if that is not clear.
func (v vocabulary) value(word string) string {
	switch strings.ToLower(strings.Trim(word, `"'`)) {
	case "y", "yes", "allow", "allowed", "true", "1":
		return v.yes
	case "n", "no", "none", "deny", "disallow", "disallowed", "false", "0":
		return v.no
	}
	return ""
}

// nearestLabel returns the label of a category that another is probably meant for; "" if it
// resembles none. Hyphens and underscores vary.
func nearestLabel(label string) string {
	bare := strings.NewReplacer("-", "", "_", "", ".", "").Replace(label)
	if len(bare) > 16 {
		return ""
	}
	return spelling.Nearest(bare, usage.Labels(), min(len(bare)/4, 2))
}

// license looks at a License line.
func (l *linter) license(s *syntax.Scanner) {
	switch {
	case s.Value == "":
		l.report(Decisions, s.Line, "the line names no licence; it needs a URL such as https://example.com/license.xml")
	case strings.ContainsAny(s.Value, syntax.Space):
		l.report(Decisions, s.Line, "a License line has one URL and nothing else; each URL needs a line of its own")
	case !usage.ReadableLicense(s.Value):
		l.report(Decisions, s.Line, "%s is no absolute URL of a licence, so it is ignored; it needs scheme and host, as in https://example.com/license.xml", quote(s.Value))
	default:
		l.licenses = append(l.licenses, s.Line)
	}
}

// lastLicense looks at licences at the end of the file: their author may have taken them for licences
// for everyone, but they stand in the last group (RSL 1.0, 4.4.2).
func (l *linter) lastLicense() {
	if len(l.licenses) == 0 || len(l.run) == 0 || slices.ContainsFunc(l.run, func(t *token) bool { return t.name == "*" }) {
		return
	}
	l.report(Decisions, l.licenses[0], "the line stands in the group for %s, so the licence is for no other crawler; above the first User-agent line it would be for all", quote(l.run[0].name))
}
