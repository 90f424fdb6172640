package docs

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/keyfile"
)

// TestReadmeSigning does what docs/signatures.md says, in its order: make a key, publish the directory,
// and change the key. After each step the directory has the keys that it should have, and valid
// signatures of them.
func TestReadmeSigning(t *testing.T) {
	dir, page := t.TempDir(), gatetest.Read(t, "docs/signatures.md")
	blocks := regexp.MustCompile("(?ms)^```(sh|yaml)\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	config := ""
	var outs []string
	for _, block := range blocks {
		if block[1] == "yaml" {
			config = block[2]
			gatetest.Write(t, filepath.Join(dir, "gate.yaml"), config)
			continue
		}
		if strings.Contains(block[2], "news-key.pem > directory") { // the page has said to change it
			gatetest.Write(t, filepath.Join(dir, "gate.yaml"), strings.Replace(config, "news-key.pem", "next.pem", 1))
		}
		cmd := exec.Command("sh", "-ec", block[2])
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: typed\n%sgot\n%s", err, block[2], out)
		}
		outs = append(outs, string(out)+wantDirectory(t, dir))
	}
	first, err := keyfile.Load(filepath.Join(dir, "news-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	next, err := keyfile.Load(filepath.Join(dir, "next.pem"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := first.ID()+"\n", next.ID()+"\n"
	if got, want := strings.Join(outs, "|"), strings.Join([]string{a, a, a, b + a + b, b + a}, "|"); got != want {
		t.Errorf("got the keys\n%s\nwant\n%s", got, want)
	}
	lines := gatetest.Read(t, filepath.Join(dir, "directory.conf"))
	if n := len(regexp.MustCompile(`(?m)^add_header [A-Z][A-Za-z-]+ '[^']+';$`).FindAllString(lines, -1)); n != 4 || strings.Count(lines, "\n") != 4 {
		t.Errorf("%d lines for nginx, want 4:\n%s", n, lines)
	}
}

// wantDirectory checks the directory and the header lines in dir. It returns the ids of the keys, one a
// line; "" if nothing is published.
func wantDirectory(t *testing.T, dir string) (ids string) {
	t.Helper()
	if files, _ := filepath.Glob(filepath.Join(dir, "directory")); files == nil {
		return ""
	}
	body, h := gatetest.Read(t, filepath.Join(dir, "directory")), http.Header{}
	for line := range strings.Lines(gatetest.Read(t, filepath.Join(dir, "directory.headers"))) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		h.Set(name, value)
	}
	var set struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal([]byte(body), &set); err != nil {
		t.Fatal(err)
	}
	var keys []*keyfile.Key
	for _, file := range []string{"news-key.pem", "next.pem"} {
		key, err := keyfile.Load(filepath.Join(dir, file))
		if err == nil && strings.Contains(body, key.ID()) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b *keyfile.Key) int { return strings.Index(body, a.ID()) - strings.Index(body, b.ID()) })
	created := regexp.MustCompile(`;created=(\d+)`).FindStringSubmatch(h.Get("Signature-Input"))
	if created == nil {
		t.Fatalf("the directory has the header lines %v", h)
	}
	seconds, _ := strconv.ParseInt(created[1], 10, 64)
	for _, want := range keyfile.Headers(keys, "bots.example.com", time.Unix(seconds, 0)) {
		if got := h.Get(want.Name); got != want.Value {
			t.Errorf("%s: got %s, want %s", want.Name, got, want.Value)
		}
	}
	for _, k := range set.Keys {
		ids += k.Kid + "\n"
	}
	return ids
}
