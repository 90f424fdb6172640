package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"robotsgate/internal/console"
)

// FuzzUsageBatch: every line has one answer. It is an error, or the values are those of the statements:
// n if any says so.
func FuzzUsageBatch(f *testing.F) {
	for _, line := range []string{
		`{"url": "/a", "product_token": "x", "robots": "User-agent: *\nContent-Usage: /a train-ai=n, search=y\nLicense: https://a.example/l"}`,
		`{"url": "/", "headers": [["Content-Signal", "ai-train=no, search=yes"], ["tdm-reservation", "1"], ["X-Robots-Tag", "noai"]]}`,
		`{"url": "/", "html": "<meta name=tdm-reservation content=0><link rel=license type=application/rsl+xml href=https://a.example/>", "tdmrep": "[{\"location\": \"/\", \"tdm-reservation\": 1}]"}`,
		`{"url": "/", "headers": [["a"]]}`, `[]`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n") || len(bytes.TrimSpace(line)) == 0 {
			t.Skip()
		}
		var out bytes.Buffer
		err := (&Usage{Batch: true}).Run(t.Context(), console.Streams{In: bytes.NewReader(line), Out: &out})
		var a struct {
			usageAnswer
			Error string `json:"error"`
		}
		if jsonErr := json.Unmarshal(out.Bytes(), &a); jsonErr != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("%v: %q", jsonErr, out.Bytes())
		}
		if (a.Error != "") != (err != nil) {
			t.Fatalf("got %v with %q", err, out.Bytes())
		}
		values := map[string]string{}
		for _, d := range a.Detail {
			if values[d.Use] != "n" {
				values[d.Use] = d.Value
			}
			if d.Value != "y" && d.Value != "n" || (d.Line > 0) != (d.In == "robots") {
				t.Errorf("got %+v", d)
			}
		}
		if len(values) != len(a.Usage) {
			t.Errorf("got %v, the statements say %v", a.Usage, values)
		}
		for use, value := range values {
			if a.Usage[use] != value {
				t.Errorf("%s: got %q, want %q", use, a.Usage[use], value)
			}
		}
	})
}
