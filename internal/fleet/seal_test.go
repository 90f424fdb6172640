package fleet

import (
	"bytes"
	"crypto/cipher"
	"testing"
)

// TestEncrypted: a stored value can't be read without the key, and two equal texts have different values.
func TestEncrypted(t *testing.T) {
	var sealers []*sealer
	for _, c := range "ab" {
		s, err := newSealer(bytes.Repeat([]byte{byte(c)}, MinKey), "robotsgate")
		if err != nil {
			t.Fatal(err)
		}
		sealers = append(sealers, s)
	}
	text := bytes.Repeat([]byte("origin.example "), 100)
	first, second := sealers[0].seal("name", "kind", text), sealers[0].seal("name", "kind", text)
	body := first[sealHead : sealHead+len(text)]
	if bytes.Contains(first, []byte("example")) || bytes.Contains(second, body[:16]) {
		t.Error("the value shows its text")
	}
	read := make([]byte, len(text))
	cipher.NewCTR(sealers[1].block, first[9:sealHead]).XORKeyStream(read, body)
	if bytes.Equal(read, text) {
		t.Error("another key decrypts the value")
	}
}
