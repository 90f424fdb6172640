package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// MinKey is the length of the shortest key, in bytes.
const MinKey = 32

// A sealer authenticates values. A sealed value is an HMAC-SHA-256 and the text; the HMAC is over the name of the key
// under which the value is stored, and the text.
type sealer []byte

func newSealer(key []byte) (sealer, error) {
	if len(key) < MinKey {
		return nil, fmt.Errorf("the key has %d bytes, at least %d are needed", len(key), MinKey)
	}
	return key, nil
}

func (s sealer) seal(name string, text []byte) []byte {
	return append(s.mac(name, text), text...)
}

func (s sealer) mac(name string, text []byte) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write(binary.AppendUvarint(nil, uint64(len(name))))
	mac.Write([]byte(name))
	mac.Write(text)
	return mac.Sum(nil)
}

var errForged = errors.New("the value was not made by a gate of this fleet, or for another key")

// open returns the text of a sealed value.
func (s sealer) open(name, sealed string) ([]byte, error) {
	if len(sealed) < sha256.Size {
		return nil, errForged
	}
	text := []byte(sealed[sha256.Size:])
	if !hmac.Equal([]byte(sealed[:sha256.Size]), s.mac(name, text)) {
		return nil, errForged
	}
	return text, nil
}
