package proxy

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"robotsgate/proxy/internal/sfv"
)

// TestAnnotatorTakesOneRow adds an annotation: of a field of robots.txt that no code knows,
// with its group and line, of a response header field, and of a meta.
func TestAnnotatorTakesOneRow(t *testing.T) {
	before := annotators
	t.Cleanup(func() { annotators = before })
	annotators = append(slices.Clip(annotators), annotator{
		field: "Robots-Gate-Example", reads: []string{"X-Example"}, write: writeExample,
	})
	w := newWorld(t, options{
		robots: "Example: of no group\nUser-agent: OtherBot\nDisallow: /\nExample: other\nUser-agent: ExampleBot\nDisallow: /private/\nExample: mine # a comment\n",
		handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Connection", "X-Example") // removed from the response
			rw.Header().Set("X-Example", "field")
			io.WriteString(rw, `<head><meta name="example" content="meta"></head>`)
		},
	})
	w.ways(t, func(t *testing.T, v way) {
		resp, _ := v.get(t, "/")
		want := `mine;group="examplebot";line=7, field, meta`
		wantHeader(t, resp, "Robots-Gate-Example", want)
		resp, _ = v.get(t, "/private/")
		wantHeader(t, resp, "Robots-Gate-Example", `mine;group="examplebot";line=7`)
	})
}

// TestAnnotatorWithoutValue drops what an annotator has appended if it then reports no value. The
// next header must not begin with it.
func TestAnnotatorWithoutValue(t *testing.T) {
	before := annotators
	t.Cleanup(func() { annotators = before })
	annotators = []annotator{
		{field: "Robots-Gate-None", write: func(f *sfv.Field, _ *signals) bool {
			f.Token("not valid")
			return false
		}},
		{field: "Robots-Gate-Next", write: func(f *sfv.Field, _ *signals) bool {
			f.Token("next")
			return true
		}},
	}
	h := http.Header{}
	annotate(h, &signals{})
	if len(h) != 1 || h.Get("Robots-Gate-Next") != "next" {
		t.Errorf("got %q, want only Robots-Gate-Next: next", h)
	}
}

func writeExample(f *sfv.Field, s *signals) (found bool) {
	for r := range s.Decision.Group.Fields("Example") {
		f.Member()
		f.Token(r.Value)
		f.TextParam("group", s.Decision.Group.Name())
		f.Param("line")
		f.Integer(int64(r.Line))
		found = true
	}
	for _, value := range s.received["X-Example"] {
		f.Member()
		f.Token(value)
		found = true
	}
	for _, m := range s.metas {
		if m.Name == "example" {
			f.Member()
			f.Token(m.Content)
			found = true
		}
	}
	return found
}
