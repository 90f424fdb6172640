package keyfile

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestReadDirectory(t *testing.T) {
	known := knownKeys(t)
	both := string(Directory([]*Key{known["two"], known["rfc9421"]}))
	ids := known["two"].ID() + " " + known["rfc9421"].ID()
	for _, c := range []struct{ body, want string }{
		{both, ids},
		{" " + strings.ReplaceAll(both, ",", " ,\n"), ids},
		{strings.ReplaceAll(both, `,"use":"sig"`, ``), ids},
		{strings.ReplaceAll(both, `"kid"`, `"name"`), ids}, // the id follows from x
		{strings.Replace(both, "Ed25519", "X25519", 1), known["rfc9421"].ID()},
		{strings.Replace(both, `"x":"`, `"x":"A`, 1), known["rfc9421"].ID()},
		{`{"keys":[]}`, ""},
		{strings.Replace(both, `"use"`, `"d":"x","use"`, 1), "!private key"},
		{`{}`, "!not a JWK Set"},
		{`[]`, "!not a JWK Set"},
		{`<html>`, "!not a JWK Set"},
		{``, "!not a JWK Set"},
		{both + "x", "!not a JWK Set"},
	} {
		ids, err := ReadDirectory([]byte(c.body))
		if mistake, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), mistake) {
				t.Errorf("%s: got %q, %v, want an error with %q", c.body, ids, err, mistake)
			}
		} else if got := strings.Join(ids, " "); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.body, got, err, c.want)
		}
	}
}

func TestCheckHeaders(t *testing.T) {
	known := knownKeys(t)
	keys := []*Key{known["two"], known["rfc9421"]}
	const authority = "bots.example.com"
	now := time.Unix(1735689600, 0)
	body := string(Directory(keys))
	replace := func(name, old, by string) func(http.Header) {
		return func(h http.Header) { h.Set(name, strings.ReplaceAll(h.Get(name), old, by)) }
	}
	for _, c := range []struct {
		name    string
		change  func(http.Header)
		body    string
		host    string
		now     time.Time
		mistake string // in the error; "": none
	}{
		{name: "as made"},
		{name: "on several lines", change: func(h http.Header) {
			for _, name := range []string{"Signature-Input", "Signature"} {
				h[name] = strings.Split(h.Get(name), ", ")
			}
		}},
		{name: "the last second", now: now.Add(90*24*time.Hour - time.Second)},
		{name: "expired", now: now.Add(90 * 24 * time.Hour), mistake: "has expired at 2025-04-01T00:00:00Z"},
		{name: "of the future", now: now.Add(-time.Second), mistake: "later than this machine's time"},
		{name: "an end of line behind the body", body: body + "\n", mistake: "Content-Digest"},
		{name: "another host", host: "www.example.com", mistake: "not valid for www.example.com"},
		{name: "no Content-Digest", change: func(h http.Header) { h.Del("Content-Digest") }, mistake: "Content-Digest"},
		{name: "no Signature-Input", change: func(h http.Header) { h.Del("Signature-Input") }, mistake: "no signature of this key"},
		{name: "no Signature", change: func(h http.Header) { h.Del("Signature") }, mistake: "not valid"},
		{name: "not a dictionary", change: func(h http.Header) { h.Set("Signature-Input", "(") }, mistake: "Signature-Input can't be read"},
		{name: "a signature that is not a dictionary", change: func(h http.Header) { h.Set("Signature", "(") }, mistake: "Signature can't be read"},
		{name: "another tag", change: replace("Signature-Input", "http-message-signatures-directory", "web-bot-auth"), mistake: "no signature of this key"},
		{name: "other components", change: replace("Signature-Input", `;req "content-digest"`, `;req`), mistake: "other components"},
		{name: "an item in place of a list", change: func(h http.Header) { h.Set("Signature-Input", `binding0=1;keyid="x"`) }, mistake: "no signature of this key"},
		{name: "the signature of the other key", change: replace("Signature", "binding1", "x"), mistake: "not valid"},
	} {
		h := http.Header{}
		for _, f := range Headers(keys, authority, now) {
			h.Set(f.Name, f.Value)
		}
		if c.change != nil {
			c.change(h)
		}
		if c.body == "" {
			c.body = body
		}
		if c.host == "" {
			c.host = authority
		}
		if c.now.IsZero() {
			c.now = now
		}
		err := CheckHeaders(h, []byte(c.body), known["rfc9421"], c.host, c.now)
		if c.mistake == "" && err != nil || c.mistake != "" && (err == nil || !strings.Contains(err.Error(), c.mistake)) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.mistake)
		}
	}
}
