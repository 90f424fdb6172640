package response

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/header"
)

// AddExample adds a row to the table of annotators until the test ends, for TestAnnotatorTakesOneRow.
func AddExample(t *testing.T) {
	before := annotators
	t.Cleanup(func() { annotators = before })
	annotators = append(slices.Clip(annotators), annotator{
		field: "Robots-Gate-Example", reads: []string{"X-Example"}, write: writeExample,
	})
}

// TestAnnotatorWithoutValue drops what an annotator has appended if it then reports no value. The
// next header must not begin with it.
func TestAnnotatorWithoutValue(t *testing.T) {
	before := annotators
	t.Cleanup(func() { annotators = before })
	annotators = []annotator{
		{field: "Robots-Gate-None", write: func(f *header.Field, _ *Signals) bool {
			f.Token("not valid")
			return false
		}},
		{field: "Robots-Gate-Next", write: func(f *header.Field, _ *Signals) bool {
			f.Token("next")
			return true
		}},
	}
	h := http.Header{}
	Annotate(h, &Signals{})
	if len(h) != 1 || h.Get("Robots-Gate-Next") != "next" {
		t.Errorf("got %q, want only Robots-Gate-Next: next", h)
	}
}

func writeExample(f *header.Field, s *Signals) (found bool) {
	for r := range s.Decision.Group.Fields("Example") {
		f.Member()
		f.Token(r.Value)
		f.TextParam("group", s.Decision.Group.Name())
		f.Param("line")
		f.Integer(int64(r.Line))
		found = true
	}
	for _, value := range s.Received["X-Example"] {
		f.Member()
		f.Token(value)
		found = true
	}
	for _, m := range s.Metas {
		if m.Name == "example" {
			f.Member()
			f.Token(m.Content)
			found = true
		}
	}
	return found
}

func BenchmarkAnnotate(b *testing.B) {
	x := &Signals{ID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", Inspection: Inspection{Head: Head{State: "complete", Bytes: 3500},
		Tags: []robotstag.Rule{{Name: "max-snippet", Value: "20", Source: "meta", Scope: "robots"}, {Name: "noarchive", Source: "meta", Scope: "robots"}}},
		Decision: &policy.Decision{Allow: true, Reason: policy.ByRule, Token: "ExampleBot", RobotsURL: "https://www.example.com/robots.txt",
			Robots: &snapshot.Resolution{State: snapshot.Fresh, Age: time.Minute, Snapshot: &snapshot.Snapshot{Status: 200, SHA256: strings.Repeat("ab", 32)}}},
	}
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		Annotate(h, x)
	}
}
