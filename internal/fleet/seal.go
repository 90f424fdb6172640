package fleet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// MinKey is the length of the shortest key, in bytes.
const MinKey = 32

// maxAhead is how far the clock of the gate that has sealed a value may be ahead.
const maxAhead = time.Minute

// A sealer makes the names of keys, which hide the origins' names, and values that only gates with the
// same key can read and make. A sealed value is
//
//	version (1 byte), time of sealing (8, Unix milliseconds), nonce (16), encrypted text, HMAC-SHA-256 (32)
//
// The HMAC is over the name under which the value is stored and everything before it.
type sealer struct {
	prefix      string
	names, macs []byte
	block       cipher.Block
	now         func() time.Time
}

const (
	sealVersion = 1
	sealHead    = 1 + 8 + aes.BlockSize
	sealSize    = sealHead + sha256.Size // beside the text
)

func newSealer(key []byte, prefix string) (*sealer, error) {
	if len(key) < MinKey {
		return nil, fmt.Errorf("the key has %d bytes, at least %d are needed", len(key), MinKey)
	}
	derived := map[string][]byte{}
	for _, use := range []string{"names", "macs", "text"} {
		k, err := hkdf.Key(sha256.New, key, nil, "robotsgate fleet "+use, 32)
		if err != nil {
			return nil, err
		}
		derived[use] = k
	}
	block, err := aes.NewCipher(derived["text"])
	if err != nil {
		return nil, err
	}
	return &sealer{prefix: prefix, names: derived["names"], macs: derived["macs"], block: block, now: time.Now}, nil
}

// name returns the name under which something about a text is stored, such as the key of a scope. In a
// Cluster all keys that begin with it are on the same server.
func (s *sealer) name(text string) string {
	sum := hmac.New(sha256.New, s.names)
	sum.Write([]byte(text))
	return s.prefix + ":{" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:16]) + "}"
}

// seal returns text as it is stored under a name. Kind says which of the values under that name it is.
func (s *sealer) seal(name, kind string, text []byte) []byte {
	sealed := make([]byte, sealHead+len(text), sealSize+len(text))
	sealed[0] = sealVersion
	binary.BigEndian.PutUint64(sealed[1:], uint64(s.now().UnixMilli()))
	nonce := sealed[9:sealHead]
	rand.Read(nonce) // never fails
	cipher.NewCTR(s.block, nonce).XORKeyStream(sealed[sealHead:], text)
	return append(sealed, s.mac(name, kind, sealed)...)
}

func (s *sealer) mac(name, kind string, sealed []byte) []byte {
	mac := hmac.New(sha256.New, s.macs)
	for _, part := range []string{name, kind} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write([]byte(part))
	}
	mac.Write(sealed)
	return mac.Sum(nil)
}

var errForged = errors.New("the value was not made by a gate of this fleet, or for another key")

// open returns the text of a sealed value, and when it was sealed.
func (s *sealer) open(name, kind string, sealed []byte) (text []byte, at time.Time, err error) {
	if len(sealed) < sealSize || sealed[0] != sealVersion {
		return nil, time.Time{}, errForged
	}
	body, mac := sealed[:len(sealed)-sha256.Size], sealed[len(sealed)-sha256.Size:]
	if !hmac.Equal(mac, s.mac(name, kind, body)) {
		return nil, time.Time{}, errForged
	}
	at = time.UnixMilli(int64(binary.BigEndian.Uint64(body[1:])))
	if at.After(s.now().Add(maxAhead)) {
		return nil, time.Time{}, fmt.Errorf("the value was sealed at %s, which is in the future", at.UTC().Format(time.RFC3339))
	}
	text = make([]byte, len(body)-sealHead)
	cipher.NewCTR(s.block, body[9:sealHead]).XORKeyStream(text, body[sealHead:])
	return text, at, nil
}
