package keyfile

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// ReadDirectory returns the ids of the Ed25519 keys in a directory; other keys are left out. An error means
// that body is not a JWK Set, or that it has a private key.
func ReadDirectory(body []byte) (ids []string, err error) {
	var set struct {
		Keys []struct {
			Kty, Crv, X string
			D           any
		}
	}
	if err := json.Unmarshal(body, &set); err != nil || set.Keys == nil {
		return nil, errors.New("it is not a JWK Set, which is JSON with a list of keys")
	}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		switch {
		case k.D != nil:
			return nil, errors.New("it has a private key (d), so that others can sign with it: make another key")
		case k.Kty == "OKP" && k.Crv == "Ed25519" && err == nil && len(x) == ed25519.PublicKeySize:
			ids = append(ids, thumbprint(x))
		}
	}
	return ids, nil
}

// CheckHeaders returns an error that says what is wrong with the header lines of a response with a
// directory, unless they have a signature of key that a verifier accepts at now. Authority is that of
// the agent, as for [Headers].
func CheckHeaders(h http.Header, body []byte, key *Key, authority string, now time.Time) error {
	sum := sha256.Sum256(body)
	digest := strings.Join(h.Values("Content-Digest"), ", ")
	if want := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"; digest != want {
		return errors.New("its Content-Digest does not belong to these bytes")
	}
	inputs, err := httpsfv.UnmarshalDictionary(h.Values("Signature-Input"))
	if err != nil {
		return errors.New("its Signature-Input can't be read")
	}
	signatures, err := httpsfv.UnmarshalDictionary(h.Values("Signature"))
	if err != nil {
		return errors.New("its Signature can't be read")
	}
	wrong := errors.New("it has no signature of this key")
	for _, label := range inputs.Names() {
		member, _ := inputs.Get(label)
		input, ok := member.(httpsfv.InnerList)
		if !ok || param(input, "keyid") != key.id || param(input, "tag") != directoryTag {
			continue
		}
		if wrong = checkSignature(input, signatures, label, digest, key, authority, now); wrong == nil {
			return nil
		}
	}
	return wrong
}

func param(list httpsfv.InnerList, name string) any {
	value, _ := list.Params.Get(name)
	return value
}

// checkSignature checks the signature with a label. Its input names key.
func checkSignature(input httpsfv.InnerList, signatures *httpsfv.Dictionary, label, digest string, key *Key, authority string, now time.Time) error {
	params, err := httpsfv.Marshal(input)
	if err != nil {
		return err
	}
	created, _ := param(input, "created").(int64)
	expires, _ := param(input, "expires").(int64)
	member, _ := signatures.Get(label)
	item, _ := member.(httpsfv.Item)
	signature, _ := item.Value.([]byte)
	switch {
	case !strings.HasPrefix(params, components+";"):
		return errors.New("its signature covers other components than " + components)
	case created > now.Unix():
		return fmt.Errorf("its signature is of %s, which is later than this machine's time", stamp(created))
	case expires <= now.Unix():
		return fmt.Errorf("its signature has expired at %s", stamp(expires))
	case !ed25519.Verify(key.public, signatureBase(authority, digest, params), signature):
		return errors.New("its signature is not valid for " + authority)
	}
	return nil
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
