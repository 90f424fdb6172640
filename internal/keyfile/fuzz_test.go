package keyfile

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzParse: a key that is accepted signs what its public key verifies, and an error has no line of
// the file.
func FuzzParse(f *testing.F) {
	for _, v := range vectors[fileVector](f, "keyfiles.json") {
		f.Add(v.data(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := Parse(data)
		if err == nil {
			if !ed25519.Verify(key.Public(), data, key.Sign(data)) {
				t.Error("the signature is not valid")
			}
			if key.ID() == testKeyID {
				t.Error("the published test key is accepted")
			}
			return
		}
		text := strings.ReplaceAll(err.Error(), needed, "")
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); len(line) >= 12 && strings.Contains(text, line) {
				t.Errorf("the error repeats %q of the file: %v", line, err)
			}
		}
	})
}

// FuzzCheckHeaders: only what the key has signed is accepted, however it is written.
func FuzzCheckHeaders(f *testing.F) {
	key := New(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	const authority = "bots.example.com"
	now := time.Unix(1735689600, 0)
	body, made := Directory([]*Key{key}), http.Header{}
	for _, h := range Headers([]*Key{key}, authority, now) {
		made.Set(h.Name, h.Value)
	}
	input, signature := made.Get("Signature-Input"), made.Get("Signature")
	f.Add(input, signature)
	f.Add(`a=("@authority";req), `+input, `a=:AAAA:, `+signature)
	f.Add(strings.ReplaceAll(input, ";", "; "), " "+signature)
	_, signed, _ := strings.Cut(signature, "=:")
	signed = signed[:80] // the unused bits of base64's last character may differ
	f.Fuzz(func(t *testing.T, input, signature string) {
		h := http.Header{"Content-Digest": made["Content-Digest"], "Signature-Input": {input}, "Signature": {signature}}
		if err := CheckHeaders(h, body, key, authority, now); err == nil && !strings.Contains(signature, signed) {
			t.Errorf("accepted:\nSignature-Input: %s\nSignature: %s", input, signature)
		}
		_, _ = ReadDirectory([]byte(input))
	})
}
