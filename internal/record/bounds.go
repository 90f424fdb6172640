package record

import "robotsgate/internal/logtext"

// A record is bounded, since clients and origins choose what is in it: with records as long as they like
// they could fill the disk, or make a rotation remove the files with the evidence of others. Bounds are in
// bytes of the log, where characters are escaped.
const (
	// Max bounds a record: one that is longer is written without its lists. Only the URL of a decision
	// can make it longer still, since the decision can be made again from it: proxy bounds that URL.
	Max = 32 << 10
	// MaxURL bounds a URL that was not decided.
	MaxURL = 2 << 10
	// MaxText bounds each other text.
	MaxText = 512
)

// Bound cuts the texts that take more than their bounds. A text that was cut ends with "…".
func (r *Record) Bound() {
	for _, text := range []*string{&r.Method, &r.Rule, &r.ReadAs, &r.Note, &r.Group, &r.Error} {
		*text = logtext.Cut(*text, MaxText)
	}
	if r.Decision == "" {
		r.Path, r.URL = logtext.Cut(r.Path, MaxURL), logtext.Cut(r.URL, MaxURL)
	}
}
