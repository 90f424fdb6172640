package proxy

import (
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/sfv"
)

// maxUsageField bounds Robots-Gate-Usage and Robots-Gate-License, in bytes: a robots.txt has room for
// thousands of statements, and common clients accept 16 KiB of header fields in all.
const maxUsageField = 6 << 10

// derivedField is the key of the text of a field in [usage.Derive].
type derivedField string

// writeUsage appends one member for each preference. found reports whether it has appended any.
func writeUsage(f *sfv.Field, s *signals) (found bool) {
	if len(s.Stated.Preferences) == 0 {
		return false
	}
	text := usage.Derive(s.Stated, derivedField(headerUsage), preferencesText)
	f.AppendText(text)
	return text != ""
}

// preferencesText returns the members. If they get longer than maxUsageField, it returns one for each category
// and value instead, so that no reservation is left out.
func preferencesText(s usage.Stated) string {
	f := sfv.New()
	for _, p := range s.Preferences {
		preferenceMember(f, p)
		if f.Len() > maxUsageField {
			f.Reset()
			firstPreferences(f, s.Preferences)
			break
		}
	}
	return f.Text()
}

// firstPreferences appends the first preference for each category and value.
func firstPreferences(f *sfv.Field, all []usage.Preference) {
	type statement struct {
		category string
		allowed  bool
	}
	seen := map[statement]bool{}
	for _, p := range all {
		if key := (statement{p.Category, p.Allowed}); !seen[key] && f.Len() <= maxUsageField {
			seen[key] = true
			preferenceMember(f, p)
		}
	}
}

// preferenceMember appends a preference, unless its category is not a Token: a label from the network
// must not make the whole field invalid.
func preferenceMember(f *sfv.Field, p usage.Preference) {
	if !sfv.IsToken(p.Category) {
		return
	}
	f.Member()
	f.Token(p.Category)
	f.Param("v")
	f.Token(p.Value())
	sourceParams(f, p.Source, p.In, p.Line)
}

// sourceParams says where a preference or a licence was read.
func sourceParams(f *sfv.Field, source usage.Source, in usage.Place, line int) {
	f.Param("src")
	f.Token(string(source))
	f.Param("in")
	f.Token(string(in))
	if line > 0 {
		f.Param("line")
		f.Integer(int64(line))
	}
}

// reservedParams says which preference denies a request. The zero value of by means that the page could
// not be read whole.
func reservedParams(f *sfv.Field, by usage.Preference) {
	if !sfv.IsToken(by.Category) {
		f.Flag("unread")
		return
	}
	f.Param("use")
	f.Token(by.Category)
	sourceParams(f, by.Source, by.In, by.Line)
}

// writeLicense appends one member for each licence, within the bound.
func writeLicense(f *sfv.Field, s *signals) (found bool) {
	for _, l := range s.Stated.Licenses {
		if !sfv.IsPrintable(l.URL) || f.Len()+len(l.URL) > maxUsageField {
			continue
		}
		f.Member()
		f.Quoted(l.URL)
		sourceParams(f, l.Source, l.In, l.Line)
		found = true
	}
	return found
}
