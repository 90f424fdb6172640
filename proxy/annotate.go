package proxy

import (
	"net/http"

	"robotsgate/htmlmeta"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/sfv"
)

// The fields that the gate adds to responses. All are structured fields (RFC 9651).
const (
	headerDecision = "Robots-Gate-Decision"
	headerSource   = "Robots-Gate-Source"
	headerTags     = "Robots-Gate-Tags"
	headerMeta     = "Robots-Gate-Meta"
	headerDelay    = "Robots-Gate-Delay"
	headerID       = "Robots-Gate-Id"
	headerUsage    = "Robots-Gate-Usage"
	headerLicense  = "Robots-Gate-License"

	ownPrefix = "Robots-Gate-"
)

// An annotator makes one of these fields from what is known of a request.
type annotator struct {
	field string
	// reads names the response header fields that write needs as the origin sent them.
	reads []string
	// write appends the field's value, and reports whether there is one. If it returns false, what
	// it has appended is dropped. What it may read:
	//   - records of robots.txt, of any name, with group, line and value:
	//     s.Decision.Group.Records for the group that binds the crawler,
	//     s.Decision.Robots.File.Records for the records of all groups and of none;
	//   - the origin's response header fields that reads names: s.received;
	//   - the metas of the page's head, of any name: s.metas;
	//   - everything else in the Record.
	//
	// s.Decision is nil if there was no decision. Decision.Robots is nil for an override, and its
	// File is nil if there are no rules to obey, such as when robots.txt is unreachable.
	//
	// Values of the network are hostile. Parse numbers, and append them with Integer or Decimal;
	// append other text with TextParam. Token and Quoted leave the field out if the text is not valid.
	write func(f *sfv.Field, s *signals) bool
}

// annotators are all annotations. To add one, write a file with its annotator, and add a
// row here.
var annotators = []annotator{
	{field: headerID, write: writeID},
	{field: headerDecision, write: writeDecision},
	{field: headerSource, write: writeSource},
	{field: headerDelay, write: writeDelay},
	{field: headerTags, write: writeTags, reads: []string{"Robots-Tag", "X-Robots-Tag"}},
	{field: headerMeta, write: writeMeta},
	{field: headerUsage, write: writeUsage, reads: []string{"Content-Usage", "Content-Signal", "Tdm-Reservation"}},
	{field: headerLicense, write: writeLicense, reads: []string{"Link", "Tdm-Policy"}},
}

// signals are what an annotator may read.
type signals struct {
	*Record
	received http.Header     // the fields that annotators read, as the origin sent them
	metas    []htmlmeta.Meta // of the page's head
	links    []htmlmeta.Link // of the page's head
	unknown  bool            // it is not known whether the response has a page
	seen     usage.Head      // of an earlier response, if this one has no head that could be read
}

// receive keeps the fields that annotators read. If Connection names one of them, the gate
// removes it from the response later, but its rules still bind the crawler.
func (s *signals) receive(h http.Header) {
	for _, a := range annotators {
		for _, name := range a.reads {
			values := h[name]
			if len(values) == 0 {
				continue
			}
			if s.received == nil {
				s.received = http.Header{}
			}
			s.received[name] = values
		}
	}
}

// annotate says in a response's header what was decided about its request and which robots
// rules bind the crawler.
func annotate(h http.Header, x *exchange) {
	f := sfv.New()
	x.signals.Record = &x.Record
	for _, a := range annotators {
		if a.write(f, &x.signals) {
			f.Set(h, a.field)
		} else {
			f.Reset()
		}
	}
}
