package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy"
)

var (
	oldKey = Key(strings.Repeat("old", 11))
	newKey = Key(strings.Repeat("new", 11))
)

// writeKeyed writes three records with a key to audit.jsonl in a folder.
func writeKeyed(t *testing.T, dir string, key Key) {
	t.Helper()
	l := open(t, Options{File: filepath.Join(dir, "audit.jsonl"), Keep: 10, Heads: filepath.Join(dir, "chains"), Key: key}, nil, nil)
	for i := range 3 {
		l.Write(&proxy.Record{ID: fmt.Sprint(i), Start: time.Now(), Method: "GET", URL: "http://a.example/", Origin: "http://a.example"})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// faults verifies audit.jsonl in a folder with keys.
func faults(t *testing.T, dir string, keyless bool, keys ...Key) []string {
	t.Helper()
	heads, err := Heads(filepath.Join(dir, "chains"))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(dir, "audit.jsonl")}
	v := NewVerifier(VerifyOptions{Files: files, Heads: heads, Keys: keys, Keyless: keyless, Words: VerifyWords{
		GiveKey: "; give it", NoKey: "they may have been added",
	}})
	if err := Lines(files, nil, v.Line); err != nil {
		t.Fatal(err)
	}
	v.End()
	return v.Faults
}

// TestKeys: a chain that is made with a key verifies with it, alone or among other keys, and
// not without it.
func TestKeys(t *testing.T) {
	unknown := func(k Key) string {
		return "chains made with key " + k.ID() + ", which was not given: 1, of 3 records, not checked; give it"
	}
	const none = "chains made without a key: 1, of 3 records; "
	for _, test := range []struct {
		name    string
		made    []Key
		given   []Key
		keyless bool
		want    []string // prefixes of the faults
	}{
		{"its key", []Key{oldKey}, []Key{oldKey}, false, nil},
		{"both keys", []Key{oldKey, newKey}, []Key{newKey, oldKey}, false, nil},
		{"the new key only", []Key{oldKey, newKey}, []Key{newKey}, false, []string{unknown(oldKey)}},
		{"no key", []Key{oldKey}, nil, false, []string{unknown(oldKey)}},
		{"a key for what has none", []Key{nil}, []Key{newKey}, false, []string{none}},
		{"a key from some time on", []Key{nil, newKey}, []Key{newKey}, false, []string{none}},
		{"a key from some time on, which is known", []Key{nil, newKey}, []Key{newKey}, true, nil},
		{"neither key, keyless", []Key{oldKey}, nil, true, []string{unknown(oldKey)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, key := range test.made {
				writeKeyed(t, dir, key)
			}
			if got := faults(t, dir, test.keyless, test.given...); !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestKeyForged: without the key an attacker with write access to both the log and the heads
// can't add, change or replace a record unnoticed.
func TestKeyForged(t *testing.T) {
	// rewrite computes the hashes of a chain again without a key, from some record on.
	rewrite := func(t *testing.T, file string, from int, change func(line []byte, c *chain) []byte) Link {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := newChain(nil)
		var out []byte
		for i, line := range bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n")) {
			l := lastLinkOf(t, line)
			if i < from {
				out = append(out, line...)
				c.id, c.keyID, c.number, c.hash = l.Chain, l.Key, l.Number, l.Hash
				continue
			}
			c.id, c.keyID = l.Chain, l.Key
			body, _, _ := bytes.Cut(line, []byte(`,"chain":"`))
			out = c.link(out, change(append(bytes.Clone(body), "}\n"...), &c), Link{Begins: l.Begins})
		}
		if err := os.WriteFile(file, out, 0o600); err != nil {
			t.Fatal(err)
		}
		return lastLink(t, file)
	}
	alter := func(line []byte) []byte { return bytes.Replace(line, []byte(`"bytes":0`), []byte(`"bytes":1`), 1) }
	for name, attack := range map[string]func(t *testing.T, file string) Link{
		"keyless from the first record on": func(t *testing.T, file string) Link {
			return rewrite(t, file, 0, func(line []byte, c *chain) []byte { c.keyID = ""; return alter(line) })
		},
		"keyless from the last record on": func(t *testing.T, file string) Link {
			return rewrite(t, file, 2, func(line []byte, c *chain) []byte { c.keyID = ""; return alter(line) })
		},
		"the key's ID without the key": func(t *testing.T, file string) Link {
			return rewrite(t, file, 2, func(line []byte, _ *chain) []byte { return alter(line) })
		},
		"the ID of another key": func(t *testing.T, file string) Link {
			return rewrite(t, file, 0, func(line []byte, c *chain) []byte { c.keyID = newKey.ID(); return alter(line) })
		},
		"a record added": func(t *testing.T, file string) Link {
			forge(t, file, lastLink(t, file), 1, time.Now())
			return lastLink(t, file)
		},
		"a keyless chain added": func(t *testing.T, file string) Link {
			forge(t, file, Link{Chain: "FORGED"}, 1, time.Now())
			return lastLink(t, file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeKeyed(t, dir, oldKey)
			file := filepath.Join(dir, "audit.jsonl")
			end := attack(t, file)
			locked, err := writeHead(filepath.Join(dir, "chains"), Head{Chain: end.Chain, Number: end.Number, Hash: end.Hash, Time: time.Now(), File: file, Ended: true})
			if err != nil {
				t.Fatal(err)
			}
			if locked != nil {
				locked.Close()
			}
			if got := faults(t, dir, false, oldKey); len(got) == 0 {
				t.Error("no fault")
			}
		})
	}
}

// TestEndKilledKeyed: records without the key are not taken for those of a killed gate.
func TestEndKilledKeyed(t *testing.T) {
	if !canLock(t) {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	writeKeyed(t, dir, oldKey)
	file, chains := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "chains")
	end := lastLink(t, file)
	locked, err := writeHead(chains, Head{Chain: end.Chain, Number: 3, Hash: end.Hash, Time: time.Now(), File: file, Limit: 10, Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	locked.Close()
	forge(t, file, end, 1, time.Now())
	writeKeyed(t, dir, oldKey)
	heads, err := Heads(chains)
	if h := heads[end.Chain]; err != nil || !h.Ended || h.Number != 3 {
		t.Errorf("%v, head %+v", err, h)
	}
	if got := faults(t, dir, false, oldKey); len(got) != 2 { // changed, and behind the end
		t.Errorf("got %q", got)
	}
}
