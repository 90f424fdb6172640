package keyfile

import (
	"strings"
	"testing"
	"time"
)

func TestDirectory(t *testing.T) {
	known := knownKeys(t)
	for _, v := range vectors[struct {
		Name, Agent, Body string
		Keys              []string
		Created           int64
		Headers           map[string]string
	}](t, "directory.json") {
		var keys []*Key
		for _, name := range v.Keys {
			keys = append(keys, known[name])
		}
		if got := string(Directory(keys)); got != v.Body {
			t.Errorf("%s: got\n%s\nwant\n%s", v.Name, got, v.Body)
		}
		authority := strings.TrimPrefix(v.Agent, "https://")
		got := map[string]string{}
		for _, h := range Headers(keys, authority, time.Unix(v.Created, 0)) {
			got[h.Name] = h.Value
		}
		v.Headers["Cache-Control"] = "max-age=86400"
		if len(got) != len(v.Headers) {
			t.Errorf("%s: got the fields %v, want %v", v.Name, got, v.Headers)
		}
		for name, want := range v.Headers {
			if got[name] != want {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", v.Name, name, got[name], want)
			}
		}
	}
}
