package keyfile

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDirectory(t *testing.T) {
	known := knownKeys(t)
	for _, v := range vectors[struct {
		Name, Agent, Body string
		Keys              []string
		Created, Expires  int64
		Headers           map[string]string
	}](t, "directory.json") {
		var keys []*Key
		for _, name := range v.Keys {
			keys = append(keys, known[name])
		}
		if got := string(Directory(keys)); got != v.Body {
			t.Errorf("%s: got\n%s\nwant\n%s", v.Name, got, v.Body)
		}
		authority := strings.TrimPrefix(v.Agent, "https://")
		got := map[string]string{}
		for _, h := range Headers(keys, authority, time.Unix(v.Created, 0)) {
			got[h.Name] = h.Value
		}
		v.Headers["Cache-Control"] = "max-age=86400"
		if len(got) != len(v.Headers) {
			t.Errorf("%s: got the fields %v, want %v", v.Name, got, v.Headers)
		}
		for name, want := range v.Headers {
			if got[name] != want {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", v.Name, name, got[name], want)
			}
		}
		if err := verify(got, []byte(v.Body), authority, time.Unix(v.Expires, 0), len(keys)); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// TestDirectoryOfNewKeys: a verifier accepts the directories of new keys, and none that was changed.
func TestDirectoryOfNewKeys(t *testing.T) {
	var keys []*Key
	for range 12 {
		key, err := Create(t.TempDir() + "/key.pem")
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	keys = Unique(append(keys, keys...))
	now := time.Now()
	fields := map[string]string{}
	for _, h := range Headers(keys, "bots.example.com:8443", now) {
		fields[h.Name] = h.Value
	}
	body := Directory(keys)
	if err := verify(fields, body, "bots.example.com:8443", now.Add(90*24*time.Hour), len(keys)); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another authority": verify(fields, body, "bots.example.com", now, len(keys)),
		"another body":      verify(fields, append(body, '\n'), "bots.example.com:8443", now, len(keys)),
		"91 days later":     verify(fields, body, "bots.example.com:8443", now.Add(91*24*time.Hour), len(keys)),
	} {
		if err == nil {
			t.Errorf("%s: the directory is accepted", name)
		}
	}
	for _, key := range keys {
		if strings.Contains(string(body), `"d"`) || !strings.Contains(string(body), key.ID()) {
			t.Errorf("got the directory %s", body)
		}
	}
}

var (
	bindingInput = regexp.MustCompile(`binding(\d+)=(\("@authority";req "content-digest"\);created=(\d+);expires=(\d+);keyid="([\w-]+)";tag="http-message-signatures-directory")`)
	bindingValue = regexp.MustCompile(`binding(\d+)=:([A-Za-z0-9+/=]+):`)
)

// verify checks a directory as a verifier does. It shares no code with the package.
func verify(fields map[string]string, body []byte, authority string, now time.Time, want int) error {
	if fields["Content-Type"] != "application/http-message-signatures-directory+json" {
		return fmt.Errorf("media type %q", fields["Content-Type"])
	}
	sum := sha256.Sum256(body)
	if got := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"; fields["Content-Digest"] != got {
		return fmt.Errorf("Content-Digest %s, the body has %s", fields["Content-Digest"], got)
	}
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || len(set.Keys) != want {
		return fmt.Errorf("%d keys, %v", len(set.Keys), err)
	}
	signatures := map[string]string{}
	for _, m := range bindingValue.FindAllStringSubmatch(fields["Signature"], -1) {
		signatures[m[1]] = m[2]
	}
	verified := map[string]bool{}
	for _, m := range bindingInput.FindAllStringSubmatch(fields["Signature-Input"], -1) {
		created, _ := strconv.ParseInt(m[3], 10, 64)
		expires, _ := strconv.ParseInt(m[4], 10, 64)
		if expires-created != 90*24*60*60 || now.Unix() > expires {
			return fmt.Errorf("created %d, expires %d, and it is %d", created, expires, now.Unix())
		}
		signature, err := base64.StdEncoding.DecodeString(signatures[m[1]])
		if err != nil {
			return err
		}
		base := `"@authority";req: ` + authority + "\n" + `"content-digest": ` + fields["Content-Digest"] + "\n" + `"@signature-params": ` + m[2]
		for _, k := range set.Keys {
			x, err := base64.RawURLEncoding.DecodeString(k["x"])
			if err != nil || len(x) != ed25519.PublicKeySize || k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["use"] != "sig" || len(k) != 5 {
				return fmt.Errorf("the key %v, %v", k, err)
			}
			if k["kid"] == m[5] && ed25519.Verify(x, []byte(base), signature) {
				verified[m[5]] = true
			}
		}
	}
	if len(verified) != want {
		return fmt.Errorf("%d keys have a valid signature, want %d", len(verified), want)
	}
	return nil
}
