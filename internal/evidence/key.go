package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
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
	switch {
	case name == "":
		return errors.New("it is empty")
	case len(name) > 200:
		return errors.New("it is longer than 200 bytes")
	case strings.ContainsFunc(name, bad):
		return errors.New(`it has a space, a "+" or a control character: name it as a URL without a scheme, such as crawl.example.com/gate-1`)
	}
	return nil
}

// Keys are the keys of logs. The key of a log NAME also verifies the logs NAME/…, by the same
// public key under the longer name.
type Keys struct {
	logs []logKey
}

type logKey struct {
	name   string // empty: any
	public ed25519.PublicKey
}

func (k logKey) isFor(log string) bool {
	return k.name == "" || log == k.name || strings.HasPrefix(log, k.name+"/")
}

// AddOwn adds the key of a gate that checks its own logs, whatever their names were.
func (k *Keys) AddOwn(s *Signer) { k.logs = append(k.logs, logKey{public: s.by.Public()}) }

// ParseKeys returns the keys with the given verifier keys.
func ParseKeys(logs []string) (*Keys, error) {
	k := &Keys{}
	for _, text := range logs {
		v, err := note.NewVerifier(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no verifier key of a log (NAME+ID+KEY, as robotsgate audit --public-key prints it)", text)
		}
		_, encoded, _ := strings.Cut(strings.TrimPrefix(text, v.Name()+"+"), "+")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != 1+ed25519.PublicKeySize { // the first byte names the algorithm
			return nil, fmt.Errorf("%q is not an Ed25519 key", text)
		}
		k.logs = append(k.logs, logKey{v.Name(), key[1:]})
	}
	return k, nil
}

// Log returns the verifier key of the log with a name, if one of the keys is for it.
func (k *Keys) Log(name string) (key string, ok bool) {
	for _, l := range k.logs {
		if l.isFor(name) {
			key, err := note.NewEd25519VerifierKey(name, l.public)
			return key, err == nil
		}
	}
	return "", false
}

// names reports whether one of the keys is for the log with a name, and not for any.
func (k *Keys) names(log string) bool {
	return slices.ContainsFunc(k.logs, func(l logKey) bool { return l.name != "" && l.isFor(log) })
}

// Verifier returns the verifier of signatures by a key (note.Verifiers).
func (k *Keys) Verifier(name string, id uint32) (note.Verifier, error) {
	for _, l := range k.logs {
		if !l.isFor(name) {
			continue
		}
		if key, err := note.NewEd25519VerifierKey(name, l.public); err == nil {
			if v, err := note.NewVerifier(key); err == nil && v.KeyHash() == id {
				return v, nil
			}
		}
	}
	return nil, &note.UnknownVerifierError{Name: name, KeyHash: id}
}

// Open returns the checkpoint in a signed note. An error says that the key of the log that it names is unknown,
// or has not signed it.
func (k *Keys) Open(text []byte) (torchwood.Checkpoint, error) {
	var none torchwood.Checkpoint
	n, err := note.Open(text, k)
	if err != nil {
		return none, err
	}
	c, err := torchwood.ParseCheckpoint(n.Text)
	switch {
	case err != nil:
		return none, err
	case c.Extension != "":
		return none, errors.New("the checkpoint has extension lines")
	case !slices.ContainsFunc(n.Sigs, func(s note.Signature) bool { return s.Name == c.Origin }):
		return none, errors.New("the checkpoint is not signed by the key of its log")
	}
	return c, nil
}

// Origin returns the name of the log in the text of a note, which nothing has verified.
func Origin(text string) string {
	name, _, _ := strings.Cut(text, "\n")
	return name
}
