package audit

import (
	"slices"
	"strings"

	"robotsgate/internal/escape"
	"robotsgate/policy/snapshot"
)

// An entry is bounded, since clients and origins choose what is in it: with entries as long as they like
// they could fill the disk, or make a rotation remove the files with the evidence of others. Bounds are in
// bytes of the log, where characters are escaped.
const (
	// MaxEntry bounds an entry without its lists and without the URL of a decision, which is whole: the
	// decision can be made again from it. proxy bounds that URL, and limits.max_header_bytes.
	MaxEntry = 4 << 10
	// MaxURL bounds a URL that was not decided.
	MaxURL = 2 << 10
	// MaxMethod bounds a method. Registered ones have 20 bytes at most.
	MaxMethod = 64
	// MaxText bounds each other text.
	MaxText = 512
	// maxSaid bounds the texts of a decision together, with its product token. That is whole, for the same
	// reason as the URL, and has at most 1 KiB.
	maxSaid = 1536
	// maxList bounds each list.
	maxList = 4 << 10
)

// CutURL returns a URL that takes at most MaxURL bytes in a log. If it had to be cut, digest is the SHA-256 of
// all of it.
func CutURL(url string) (first, digest string) {
	if n, _ := escape.Fit(url, MaxURL); n < len(url) {
		return strings.Clone(url[:n]), snapshot.Digest(url) // does not keep all of it in memory
	}
	return url, ""
}

// Bound cuts the texts that take more than their bounds. A text that was cut ends with "…".
func (r *Entry) Bound() {
	_, taken := escape.Fit(r.Token, maxSaid)
	r.Method = escape.Cut(r.Method, MaxMethod)
	for _, text := range []*string{&r.Rule, &r.ReadAs, &r.Note, &r.Group, &r.Error} {
		if *text == "" {
			continue
		}
		*text = escape.Cut(*text, min(MaxText, max(maxSaid-taken, len("…"))))
		_, size := escape.Fit(*text, maxSaid)
		taken += size
	}
}

// boundURL cuts the URL of a request that was not decided.
func (r *Entry) boundURL(url string) {
	first, digest := CutURL(url)
	if digest == "" {
		return
	}
	r.URLSHA256 = digest
	if r.Origin != "" {
		r.Path = strings.TrimPrefix(first, r.Origin)
	} else {
		r.URL = first
	}
}

// boundTags leaves out the last tags if they take more than maxList.
func (r *Entry) boundTags() {
	if n := fitting(r.Tags); n < len(r.Tags) {
		r.Tags, r.Cut = r.Tags[:n], append(r.Cut, "tags")
	}
}

// bound leaves out the last entries of lists that take more than maxList.
func (d *statement) bound() {
	if n := fitting(d.licenses); n < len(d.licenses) {
		d.licenses, d.cut = d.licenses[:n], append(d.cut, "licenses")
	}
	o := object{b: []byte("{")}
	for i := range d.details {
		o.preferences("", d.details[i:i+1])
		if len(o.b) > maxList {
			d.details, d.cut = d.details[:i], append(d.cut, usageMember)
			return
		}
	}
}

// fitting returns how many of the first texts of a list take at most maxList bytes.
func fitting(list []string) int {
	taken := 0
	for i, text := range list {
		n, size := escape.Fit(text, maxList)
		if taken += size + len(`"",`); n < len(text) || taken > maxList {
			return i
		}
	}
	return len(list)
}

// UsageCut reports whether Usage has only the first preferences that were in force.
func (r *Entry) UsageCut() bool { return slices.Contains(r.Cut, usageMember) }

const usageMember = "usage"
