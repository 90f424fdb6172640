package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"robotsgate/policy"
)

// FuzzIndent: a document is indented as package json does it.
func FuzzIndent(f *testing.F) {
	f.Add("", "", 0)
	f.Add(`a "quoted" text, with a backslash \ and {braces}: \"`, "line\nbreak\t\u2028é\x00", 7)
	f.Add(`ends with a backslash\`, `"`, -1)
	f.Fuzz(func(t *testing.T, detail, rule string, line int) {
		compact, err := json.Marshal(document{
			Detail: detail, Evidence: policy.Evidence{
				Rule: &policy.RuleEvidence{Line: line, Text: rule}, CrawlDelay: new(1.5),
				Robots: &policy.RobotsEvidence{URL: rule, Fetched: time.Unix(1, 0).UTC(), Truncated: line > 0},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Indent(&want, compact, "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indent(compact); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("got\n%s\nwant\n%s", got, want.Bytes())
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	compact, _ := json.Marshal(document{Type: "urn:robotsgate:rule", Title: "Disallowed", Status: 403, Detail: "Line 2 of http://a.example/robots.txt says Disallow",
		Evidence: policy.Evidence{URL: "http://a.example/x", Rule: &policy.RuleEvidence{Line: 2, Text: "Disallow: /"}, Robots: &policy.RobotsEvidence{URL: "http://a.example/robots.txt"}}})
	for b.Loop() {
		indent(compact)
	}
}

// TestStatusDetails: text of any kind can stand in Proxy-Status.
func TestStatusDetails(t *testing.T) {
	h := http.Header{}
	setStatus(h, "e", "ünprintable\n\x00\"\\"+strings.Repeat("x", 400))
	if list, err := httpsfv.UnmarshalList(h["Proxy-Status"]); err != nil || len(h.Get("Proxy-Status")) > 320 {
		t.Errorf("%v, %v", list, err)
	}
}
