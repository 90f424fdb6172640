package gate

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/keyfile"
)

func newAgent(t *testing.T, origin string) keyfile.Agent {
	t.Helper()
	key, err := keyfile.Create(filepath.Join(t.TempDir(), "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return keyfile.Agent{Origin: origin, Keys: []*keyfile.Key{key}}
}

// TestDirectories: Host chooses the agent. With one agent there is no choice.
func TestDirectories(t *testing.T) {
	bots, other := newAgent(t, "https://bots.example.com"), newAgent(t, "https://other.example:8443")
	both, one := []keyfile.Agent{bots, other}, []keyfile.Agent{bots}
	for _, c := range []struct {
		agents []keyfile.Agent
		host   string
		want   *keyfile.Agent // nil: 404
	}{
		{both, "bots.example.com", &bots},
		{both, "BOTS.example.com:443", &bots},
		{both, "other.example:8443", &other},
		{both, "other.example", nil},
		{both, "gate.internal:9309", nil},
		{both, "", nil},
		{both, "a b", nil},
		{one, "bots.example.com", &bots},
		{one, "gate.internal:9309", &bots},
		{one, "127.0.0.1:9309", &bots},
		{one, "", &bots},
	} {
		page := newDirectories(c.agents)[keyfile.DirectoryPath]
		for _, method := range []string{"GET", "HEAD"} {
			r := httptest.NewRequest(method, keyfile.DirectoryPath, nil)
			r.Host = c.host
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			resp, body := w.Result(), w.Body.String()
			if c.want == nil {
				if resp.StatusCode != 404 || strings.Contains(body, "example") || strings.Contains(body, bots.Keys[0].ID()) {
					t.Errorf("%d agents, Host %q: status %d, %s", len(c.agents), c.host, resp.StatusCode, body)
				}
				continue
			}
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != keyfile.DirectoryType || body != string(keyfile.Directory(c.want.Keys)) {
				t.Errorf("%d agents, Host %q: status %d, %v, %s", len(c.agents), c.host, resp.StatusCode, resp.Header, body)
			}
			var created int64
			_, after, _ := strings.Cut(resp.Header.Get("Signature-Input"), ";created=")
			if _, err := fmt.Sscan(after[:strings.IndexByte(after+";", ';')], &created); err != nil || time.Since(time.Unix(created, 0)) > time.Hour {
				t.Errorf("%d agents, Host %q: signed at %d, %v", len(c.agents), c.host, created, err)
			}
			for _, want := range keyfile.Headers(c.want.Keys, c.want.Authority(), time.Unix(created, 0)) {
				if got := resp.Header.Get(want.Name); got != want.Value {
					t.Errorf("%d agents, Host %q: %s: got %s, want %s", len(c.agents), c.host, want.Name, got, want.Value)
				}
			}
		}
	}
	if pages := newDirectories(nil); pages != nil {
		t.Errorf("without agents there are the pages %v", pages)
	}
}

// TestDirectoryFields: a directory is signed again after an hour, and when the clock was set back.
func TestDirectoryFields(t *testing.T) {
	agent := newAgent(t, "https://bots.example.com")
	d := newDirectories([]keyfile.Agent{agent})[keyfile.DirectoryPath].(directories)[0]
	start, last := time.Now(), ""
	for _, c := range []struct {
		after time.Duration
		new   bool
	}{{0, true}, {time.Second, false}, {time.Hour - time.Second, false}, {time.Hour, true}, {time.Hour, false}, {30 * time.Minute, true}, {31 * time.Minute, false}} {
		fields := d.fields(start.Add(c.after))
		signature := fields[len(fields)-1].Value
		if isNew := signature != last; isNew != c.new {
			t.Errorf("after %v: a new signature: %v, want %v", c.after, isNew, c.new)
		}
		last = signature
	}
}
