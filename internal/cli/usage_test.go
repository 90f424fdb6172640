package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/console"
	"robotsgate/policy/usage"
)

// TestUsageConformance runs usage --batch on the cases in the file usage.jsonl of the folder that
// ROBOTSGATE_CONFORMANCE names. Each case has the expected answer in want and, for some, in
// want_detail.
func TestUsageConformance(t *testing.T) {
	dir := os.Getenv("ROBOTSGATE_CONFORMANCE")
	if dir == "" {
		t.Skip("ROBOTSGATE_CONFORMANCE names no folder with cases")
	}
	cases, err := os.ReadFile(filepath.Join(dir, "usage.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("it has no usage.jsonl")
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&Usage{Batch: true}).Run(t.Context(), console.Streams{In: bytes.NewReader(cases), Out: &out}); err != nil {
		t.Error(err)
	}
	type answer struct {
		Usage    map[string]string `json:"usage"`
		Detail   []usage.Detail    `json:"detail"`
		Licenses []string          `json:"licenses"`
	}
	answers, n := json.NewDecoder(&out), 0
	for line := range bytes.Lines(cases) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var c struct {
			Want   answer         `json:"want"`
			Detail []usage.Detail `json:"want_detail"`
			Why    string         `json:"why"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		var got answer
		if err := answers.Decode(&got); err != nil {
			t.Fatal(err)
		}
		n++
		byPlace := func(a, b usage.Detail) int { // the order is free
			return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Use+string(a.Source+"/")+string(a.In), b.Use+string(b.Source+"/")+string(b.In)))
		}
		slices.SortFunc(got.Detail, byPlace)
		slices.SortFunc(c.Detail, byPlace)
		switch {
		case !reflect.DeepEqual(got.Usage, c.Want.Usage):
			t.Errorf("%s: got %v, want %v: %s", c.Why, got.Usage, c.Want.Usage, line)
		case c.Detail != nil && !reflect.DeepEqual(got.Detail, c.Detail):
			t.Errorf("%s: got %v, want %v: %s", c.Why, got.Detail, c.Detail, line)
		case !reflect.DeepEqual(got.Licenses, append([]string{}, c.Want.Licenses...)):
			t.Errorf("%s: got %q, want %q: %s", c.Why, got.Licenses, c.Want.Licenses, line)
		}
	}
	t.Logf("%d cases", n)
	if n == 0 {
		t.Error("no cases")
	}
}
