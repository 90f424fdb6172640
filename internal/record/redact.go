package record

import "strings"

// Redact replaces what clients send in queries. The caller does so before others read the record.
func (r *Record) Redact() {
	path, url := Redact(r.Path), Redact(r.URL)
	r.Redacted = path != r.Path || url != r.URL
	r.Path, r.URL, r.ReadAs, r.Error = path, url, Redact(r.ReadAs), redactQuoted(r.Error)
	for i, license := range r.Licenses { // an origin can repeat the query
		r.Licenses[i] = Redact(license)
	}
}

// Redact replaces the values of a URL's query, or of a fragment in its place, by "*"; the names stay.
func Redact(url string) string {
	i := strings.IndexAny(url, "?#")
	if i < 0 {
		return url
	}
	head, query := url[:i+1], url[i+1:]
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		if name, _, ok := strings.Cut(p, "="); ok {
			pairs[i] = name + "=*"
		} else if p != "" {
			pairs[i] = "*" // a lone word may be a secret as well
		}
	}
	return head + strings.Join(pairs, "&")
}

// redactQuoted replaces what an error quotes by "*": it may be an origin's malformed response, which repeats the query.
func redactQuoted(text string) string {
	before, _, quotes := strings.Cut(text, `"`)
	if !quotes {
		return text
	}
	last := strings.LastIndexByte(text, '"')
	return before + `"*"` + text[last+1:]
}
