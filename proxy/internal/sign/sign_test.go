package sign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/canonical"
)

// The published key of RFC 9421, B.1.4, and another key. They are for tests only.
var keys = map[string]struct{ seed, id string }{
	"rfc9421": {"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU", "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"},
	"two":     {"tdvo5FN0oGYdeVmnX_FX_kTZ5OrSSw63kpxADQBoHMY", "3zX4ZTuWzsy7R8qB0apIF_NinHsfq8PFN0JA_d0m96w"},
}

type testKey struct {
	id      string
	private ed25519.PrivateKey
}

func (k testKey) ID() string                 { return k.id }
func (k testKey) Sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

func newKey(t testing.TB, name string) testKey {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString(keys[name].seed)
	if err != nil {
		t.Fatal(err)
	}
	return testKey{keys[name].id, ed25519.NewKeyFromSeed(seed)}
}

// A vector is a request, and the fields and the signature base that it must have.
type vector struct {
	Name  string
	Input struct {
		Method, URL, Key, Agent, Form, Nonce string
		Created                              int64
	}
	Sent    struct{ Scheme, Authority, Target string }
	Base    string
	Headers map[string]string
}

func readJSON[T any](t testing.TB, file string) (all []T) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no cases in " + file)
	}
	return all
}

func form(name string) Form {
	if name == "dictionary" {
		return Dictionary
	}
	return String
}

// Every vector is met to the byte, from the URL that a client names.
func TestVectors(t *testing.T) {
	for _, v := range readJSON[vector](t, "testdata/gate.json") {
		t.Run(v.Name, func(t *testing.T) {
			target, err := canonical.ParseURL(v.Input.URL)
			if err != nil {
				t.Fatal(err)
			}
			if got := [...]string{target.Scheme, target.Host, target.Path}; got != [...]string{v.Sent.Scheme, v.Sent.Authority, v.Sent.Target} {
				t.Errorf("sent: got %q, want %q", got, v.Sent)
			}
			var nonce Nonce
			whole, err := base64.StdEncoding.DecodeString(v.Input.Nonce)
			if err != nil || len(whole) != len(nonce) {
				t.Fatal(len(whole), err)
			}
			copy(nonce[:], whole)
			s := New(newKey(t, v.Input.Key), v.Input.Agent, form(v.Input.Form))
			path := target.URL().EscapedPath()
			base, _ := s.appendBase(nil, target.Host, v.Input.Method, path, v.Input.Created, &nonce)
			if string(base) != v.Base {
				t.Errorf("signature base: got\n%s\nwant\n%s", base, v.Base)
			}
			f, err := s.Sign(target.Host, v.Input.Method, path, time.Unix(v.Input.Created, 0), &nonce)
			if err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]string{"Signature-Agent": f.Agent, "Signature-Input": f.Input, "Signature": f.Signature} {
				if want := v.Headers[name]; got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
				}
			}
		})
	}
}

type badKey func([]byte) []byte

func (badKey) ID() string                   { return "id" }
func (k badKey) Sign(message []byte) []byte { return k(message) }

// What can't be signed is an error, which has nothing of the key.
func TestSignErrors(t *testing.T) {
	good := newKey(t, "two")
	now := time.Unix(1735689600, 0)
	for _, c := range []struct {
		name, authority, method, path string
		at                            time.Time
		key                           Key
		want                          string
	}{
		{"no authority", "", "GET", "/", now, good, "@authority"},
		{"no method", "a.example", "", "/", now, good, "@method"},
		{"no path", "a.example", "GET", "", now, good, "@path"},
		{"line feed in the authority", "a.example\n\"@method\": PUT", "GET", "/", now, good, "@authority"},
		{"line feed in the method", "a.example", "GET\n\"@path\": /x", "/", now, good, "@method"},
		{"line feed in the path", "a.example", "GET", "/\n", now, good, "@path"},
		{"carriage return", "a.example", "GET", "/\r", now, good, "@path"},
		{"space", "a.example", "GET", "/a b", now, good, "@path"},
		{"NUL", "a.example", "GET", "/\x00", now, good, "@path"},
		{"DEL", "a.example", "GET", "/\x7f", now, good, "@path"},
		{"raw octets", "a.example", "GET", "/é", now, good, "@path"},
		{"clock", "a.example", "GET", "/", time.Unix(-5, 0), good, "clock"},
		{"no signature", "a.example", "GET", "/", now, badKey(func([]byte) []byte { return nil }), "key"},
		{"short signature", "a.example", "GET", "/", now, badKey(func([]byte) []byte { return []byte("secret") }), "key"},
		{"panic", "a.example", "GET", "/", now, badKey(func([]byte) []byte { panic("secret") }), "key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := New(c.key, "https://bots.example.com", String).Sign(c.authority, c.method, c.path, c.at, new(Nonce))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got the error %v, want one with %q", err, c.want)
			}
			if f != (Fields{}) {
				t.Errorf("got fields with the error: %v", f)
			}
		})
	}
}

// A signature covers the base that a verifier makes of the fields alone, in one line each.
func FuzzSign(f *testing.F) {
	f.Add("shop.example", "GET", "/offers.html", int64(1735689600), true)
	f.Add("[2001:db8::1]:8080", "Purge", "/%7ea;b", int64(1), false)
	f.Add("a\nb", "GET", "/\r\n", int64(-1), false)
	key := newKey(f, "two")
	f.Fuzz(func(t *testing.T, authority, method, path string, created int64, dictionary bool) {
		form, covered, component := String, `"signature-agent"`, `"https://bots.example.com"`
		if dictionary {
			form, covered, component = Dictionary, `"signature-agent";key="sig1"`, `"https://bots.example.com`+directoryPath+`"`
		}
		fields, err := New(key, "https://bots.example.com", form).Sign(authority, method, path, time.Unix(created, 0), new(Nonce))
		if err != nil {
			return
		}
		for _, v := range []string{fields.Agent, fields.Input, fields.Signature} {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("the field %q has a character that no field may have", v)
			}
		}
		params, _ := strings.CutPrefix(fields.Input, "sig1=")
		base := strings.Join([]string{`"@authority": ` + authority, `"@method": ` + method, `"@path": ` + path, covered + ": " + component, `"@signature-params": ` + params}, "\n")
		if strings.Count(base, "\n") != 4 {
			t.Fatalf("the base has more lines than components:\n%s", base)
		}
		value, _ := strings.CutPrefix(fields.Signature, "sig1=:")
		signature, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
		if err != nil || !ed25519.Verify(key.private.Public().(ed25519.PublicKey), []byte(base), signature) {
			t.Fatalf("the signature %q is not that of\n%s", fields.Signature, base)
		}
	})
}

// The fields are made in three allocations beside those of crypto/ed25519, and the rest of a signature takes a small
// part of its time.
func TestAllocations(t *testing.T) {
	key := newKey(t, "two")
	s, nonce, message := New(key, "https://bots.example.com", String), new(Nonce), bytes.Repeat([]byte("x"), 400)
	alone := testing.AllocsPerRun(100, func() { key.Sign(message) })
	got := testing.AllocsPerRun(100, func() { s.Sign("shop.example", "GET", "/offers.html", time.Unix(1735689600, 0), nonce) })
	if got > alone+3 {
		t.Errorf("got %v allocations, crypto/ed25519 alone makes %v", got, alone)
	}
}

func BenchmarkSign(b *testing.B) {
	key := newKey(b, "two")
	s, nonce := New(key, "https://bots.example.com", String), new(Nonce)
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Sign("shop.example", "GET", "/offers.html", time.Unix(1735689600, 0), nonce)
		}
	})
	b.Run("ed25519 alone", func(b *testing.B) {
		base, _ := s.appendBase(nil, "shop.example", "GET", "/offers.html", 1735689600, nonce)
		b.ReportAllocs()
		for b.Loop() {
			ed25519.Sign(key.private, base)
		}
	})
}
