package keyfile

import (
	"crypto/ed25519"
	"strings"
	"testing"
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
