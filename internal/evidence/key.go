package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"

	"robotsgate/internal/keyfile"
)

// A Signer signs the checkpoints of one log (note.Signer).
type Signer struct {
	note.Verifier
	key string // the verifier key
	by  *keyfile.Key
}

// NewSigner returns the signer of the log with a name.
func NewSigner(name string, by *keyfile.Key) (*Signer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	key, err := note.NewEd25519VerifierKey(name, by.Public())
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(key)
	return &Signer{v, key, by}, err
}

// Key returns the verifier key: NAME+ID+KEY (c2sp.org/signed-note).
func (s *Signer) Key() string { return s.key }

// Sign returns the signature of a note's text.
func (s *Signer) Sign(text []byte) ([]byte, error) { return s.by.Sign(text), nil }

// CheckName reports why a log can't have a name.
func CheckName(name string) error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' || r == unicode.ReplacementChar
	}
	if name == "" || len(name) > 200 || strings.ContainsFunc(name, bad) {
		return errors.New(`it is longer than 200 bytes, or has a space, a "+" or a control character: name it as a URL without a scheme, such as crawl.example.com/gate-1`)
	}
	return nil
}

// A Key verifies the checkpoints of the log NAME, and of the logs NAME/…, which are signed by the same key.
type Key struct {
	name   string // empty: of any
	public ed25519.PublicKey
}

// OwnKey returns the key of a gate that checks its own logs, whatever their names were.
func OwnKey(s *Signer) *Key { return &Key{public: s.by.Public()} }

// ParseKey returns the key in a verifier key.
func ParseKey(text string) (*Key, error) {
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no verifier key of a log (NAME+ID+KEY, as robotsgate audit --public-key prints it)", text)
	}
	_, encoded, _ := strings.Cut(strings.TrimPrefix(text, v.Name()+"+"), "+")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) != 1+ed25519.PublicKeySize { // the first byte names the algorithm
		return nil, fmt.Errorf("%q is not an Ed25519 key", text)
	}
	return &Key{v.Name(), key[1:]}, nil
}

// Of returns the verifier key of the log with a name.
func (k *Key) Of(log string) (string, error) {
	if k.name != "" && log != k.name && !strings.HasPrefix(log, k.name+"/") {
		return "", fmt.Errorf("the key is of log %s", k.name)
	}
	return note.NewEd25519VerifierKey(log, k.public)
}

// Open returns the checkpoint in a signed note. An error says that the key has not signed it.
func (k *Key) Open(text string) (c torchwood.Checkpoint, err error) {
	log, _ := stated(text)
	key, err := k.Of(log)
	if err != nil {
		return c, err
	}
	v, err := note.NewVerifier(key)
	if err != nil {
		return c, err
	}
	n, err := note.Open([]byte(text), note.VerifierList(v))
	if err != nil {
		return c, err
	}
	return torchwood.ParseCheckpoint(n.Text)
}

// stated returns the log and the size in the text of a note, which nothing has verified.
func stated(text string) (log string, size int64) {
	log, rest, _ := strings.Cut(text, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	size, _ = strconv.ParseInt(line, 10, 64)
	return log, size
}
