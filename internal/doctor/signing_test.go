package doctor

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gate"
	"robotsgate/internal/keyfile"
)

// TestCheckSigning: doctor finds what a verifier would refuse in a directory.
func TestCheckSigning(t *testing.T) {
	dir := t.TempDir()
	key, err := keyfile.Create(filepath.Join(dir, "news-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := keyfile.Create(filepath.Join(dir, "other.pem"))
	if err != nil {
		t.Fatal(err)
	}
	var serve http.HandlerFunc
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) }))
	defer server.Close()
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "roots.pem"), roots, 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(egress string) *gate.Config {
		t.Helper()
		text := fmt.Sprintf("crawlers: [{name: news, sign: {key_file: news-key.pem, agent: %q}}]\negress: {ca_file: roots.pem%s}\n", server.URL, egress)
		c, err := gate.ParseConfig(filepath.Join(dir, "gate.yaml"), []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	permitted := load(", allow_private: [127.0.0.0/8]")
	authority := strings.TrimPrefix(server.URL, "https://")
	respond := func(w http.ResponseWriter, keys []*keyfile.Key, created time.Time) {
		for _, f := range keyfile.Headers(keys, authority, created) {
			w.Header().Set(f.Name, f.Value)
		}
		w.Write(keyfile.Directory(keys))
	}
	ours := []*keyfile.Key{key}
	for _, c := range []struct {
		name   string
		serve  http.HandlerFunc
		want   []string // of the findings after that of the key: each a verdict and a part of its text
		config *gate.Config
	}{
		{name: "as keys prints it", serve: func(w http.ResponseWriter, _ *http.Request) { respond(w, ours, time.Now()) }, want: []string{"ok has every key"}},
		{name: "two keys", serve: func(w http.ResponseWriter, _ *http.Request) { respond(w, []*keyfile.Key{other, key}, time.Now()) }, want: []string{"ok has every key"}},
		{name: "another key", serve: func(w http.ResponseWriter, _ *http.Request) { respond(w, []*keyfile.Key{other}, time.Now()) }, want: []string{"no lacks the key " + key.ID()}},
		{name: "404", serve: http.NotFound, want: []string{"no has the status 404"}},
		{name: "a redirect", serve: http.RedirectHandler("/elsewhere", http.StatusMovedPermanently).ServeHTTP, want: []string{"no redirects (status 301)"}},
		{name: "a page", serve: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, want: []string{"no can't be used: it is not a JWK Set"}},
		{name: "a private key", serve: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[{"d":"x"}]}`) }, want: []string{"no can't be used: it has a private key"}},
		{name: "another media type", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(keyfile.Directory(ours))
		}, want: []string{`no has the media type "application/json" in place of `}},
		{name: "no signature", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", keyfile.DirectoryType)
			w.Write(keyfile.Directory(ours))
		}, want: []string{"-- has the key " + key.ID() + ", but its Content-Digest"}},
		{name: "an old signature", serve: func(w http.ResponseWriter, _ *http.Request) {
			respond(w, ours, time.Now().Add(-91*24*time.Hour))
		}, want: []string{"-- has expired"}},
		{name: "a clock that is late", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat))
			respond(w, ours, time.Now())
		}, want: []string{"ok has every key", "-- this machine's clock is 1m"}},
		{name: "a cached response", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat))
			w.Header().Set("Age", "60")
			respond(w, ours, time.Now())
		}, want: []string{"ok has every key"}},
		{name: "too long", serve: func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20)) }, want: []string{"-- can't be fetched from here: the response is longer than 64 KiB"}},
		{name: "a private address", serve: http.NotFound, want: []string{"-- can't be fetched from here"}, config: load("")},
	} {
		serve = c.serve
		if c.config == nil {
			c.config = permitted
		}
		got := checkSigning(t.Context(), c.config)
		if len(got) != 1+len(c.want) || got[0].verdict != passed || !strings.Contains(got[0].text, "news-key.pem, of news: "+key.ID()) {
			t.Errorf("%s: got %v, want the key and %q", c.name, got, c.want)
			continue
		}
		for i, want := range c.want {
			verdict, text, _ := strings.Cut(want, " ")
			f := got[i+1]
			if string(f.verdict) != verdict || !strings.Contains(f.text, text) || strings.Contains(f.text, "\x1b") {
				t.Errorf("%s: got %s %s, want %s", c.name, f.verdict, f.text, want)
			}
			if advised := len(f.advice) > 0; advised == (f.verdict == passed) {
				t.Errorf("%s: %s has the advice %q", c.name, f.verdict, f.advice)
			}
		}
	}
	if got := checkSigning(t.Context(), gate.DefaultConfig()); got != nil {
		t.Errorf("without keys: %v", got)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(filepath.Join(dir, "news-key.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	if f := checkSigning(t.Context(), permitted)[0]; f.verdict != unknown || !strings.Contains(f.text, "may read it (mode 0640)") || !strings.HasPrefix(f.advice[0], "chmod 600 ") {
		t.Errorf("a key that the group can read: %v", f)
	}
}
