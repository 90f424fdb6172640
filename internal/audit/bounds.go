package audit

import "robotsgate/internal/logtext"

// An entry is bounded, since clients and origins choose what is in it: with entries as long as they like
// they could fill the disk, or make a rotation remove the files with the evidence of others. Bounds are in
// bytes of the log, where characters are escaped.
const (
	// maxEntry bounds an entry: one that is longer is written without its lists. Only the URL of a decision
	// can make it longer still, since the decision can be made again from it: proxy bounds that URL.
	maxEntry = 32 << 10
	// MaxURL bounds a URL that was not decided.
	MaxURL = 2 << 10
	// MaxText bounds each other text.
	MaxText = 512
)

// Bound cuts the texts that take more than their bounds. A text that was cut ends with "…".
func (r *Entry) Bound() {
	for _, text := range []*string{&r.Method, &r.Rule, &r.ReadAs, &r.Note, &r.Group, &r.Error} {
		*text = logtext.Cut(*text, MaxText)
	}
	if r.Decision == "" {
		r.Path, r.URL = logtext.Cut(r.Path, MaxURL), logtext.Cut(r.URL, MaxURL)
	}
}

// line returns the entry as a line of JSON, without its place in the log.
func (r *Entry) line() ([]byte, error) {
	line, err := r.json()
	if len(line) > maxEntry && len(r.Tags)+len(r.Usage)+len(r.Licenses) > 0 {
		r.Tags, r.Usage, r.Licenses, r.Cut = nil, nil, nil, true
		return r.json()
	}
	return line, err
}
