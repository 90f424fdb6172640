package response

import (
	"net/http"

	"robotsgate/proxy/internal/header"
)

// An annotator makes one of these fields from what is known of a request.
type annotator struct {
	field string
	// reads names the response header fields that write needs as the origin sent them.
	reads []string
	// write appends the field's value, and reports whether there is one. If it returns false, what
	// it has appended is dropped. What it may read:
	//   - fields of robots.txt, of any name, with group, line and value:
	//     s.Decision.Group.Fields for the group that binds the crawler,
	//     s.Decision.Robots.File.Fields for the fields of all groups and of none;
	//   - the origin's response header fields that reads names: s.Received;
	//   - the metas of the page's head, of any name: s.Metas;
	//   - everything else in [Signals].
	//
	// s.Decision is nil if there was no decision. Decision.Robots is nil for an override, and its
	// File is nil if there are no rules to obey, such as when robots.txt is unreachable.
	//
	// Values of the network are hostile. Parse numbers, and append them with Integer or Decimal;
	// append other text with TextParam. Token and Quoted leave the field out if the text is not valid.
	write func(f *header.Field, s *Signals) bool
}

// annotators are all annotations. To add one, write a file with its annotator, and add a
// row here.
var annotators = []annotator{
	{field: headerID, write: writeID},
	{field: headerDecision, write: writeDecision},
	{field: headerSource, write: writeSource},
	{field: headerDelay, write: writeDelay},
	{field: headerBudget, write: writeBudget},
	{field: headerTags, write: writeTags, reads: []string{"Robots-Tag", "X-Robots-Tag"}},
	{field: headerMeta, write: writeMeta},
	{field: headerUsage, write: writeUsage, reads: []string{"Content-Usage", "Content-Signal", "Tdm-Reservation"}},
	{field: headerLicense, write: writeLicense, reads: []string{"Link", "Tdm-Policy"}},
}

// Fields returns the fields that annotators read. If Connection names one of them, the gate
// removes it from the response later, but its rules still bind the crawler.
func Fields(h http.Header) (received http.Header) {
	for _, a := range annotators {
		for _, name := range a.reads {
			values := h[name]
			if len(values) == 0 {
				continue
			}
			if received == nil {
				received = http.Header{}
			}
			received[name] = values
		}
	}
	return received
}

// Annotate says in a response's header what was decided about its request and which robots
// rules bind the crawler.
func Annotate(h http.Header, s *Signals) {
	f := header.NewField()
	for _, a := range annotators {
		if a.write(f, s) {
			f.Set(h, a.field)
		} else {
			f.Reset()
		}
	}
}
