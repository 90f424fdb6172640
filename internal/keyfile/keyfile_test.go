package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// vectors reads a file of testdata.
func vectors[T any](t testing.TB, name string) (list []T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %d vectors, %v", name, len(list), err)
	}
	return list
}

// A file of keyfiles.json is accepted with the keyid, or refused with a message that has the mistake.
type fileVector struct {
	Name, PEM, B64, KeyID, Mistake string
}

func (v fileVector) data(t testing.TB) []byte {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(v.B64)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(v.PEM), der...)
}

// knownKeys returns the keys of keys.json by name.
func knownKeys(t testing.TB) map[string]*Key {
	all := map[string]*Key{}
	for _, k := range vectors[struct{ Name, D, X, KeyID string }](t, "keys.json") {
		seed, err := base64.RawURLEncoding.DecodeString(k.D)
		if err != nil {
			t.Fatal(err)
		}
		key := New(ed25519.NewKeyFromSeed(seed))
		if got := base64.RawURLEncoding.EncodeToString(key.Public()); key.ID() != k.KeyID || got != k.X {
			t.Errorf("%s: got the thumbprint %s of %s, want %s of %s", k.Name, key.ID(), got, k.KeyID, k.X)
		}
		all[k.Name] = key
	}
	return all
}

// TestPublished: the keys make the signatures that RFC 9421, appendix B.2.6, and the draft's test
// vectors publish.
func TestPublished(t *testing.T) {
	keys := knownKeys(t)
	for _, v := range vectors[struct {
		Name, Key, Base string
		Headers         map[string]string
	}](t, "published.json") {
		_, want, _ := strings.Cut(v.Headers["Signature"], "=")
		if got := ":" + base64.StdEncoding.EncodeToString(keys[v.Key].Sign([]byte(v.Base))) + ":"; got != want {
			t.Errorf("%s: got the signature %s, want %s", v.Name, got, want)
		}
		if id := `keyid="` + keys[v.Key].ID() + `"`; !strings.Contains(v.Base, id) && !strings.Contains(v.Base, `keyid="test-key-ed25519"`) {
			t.Errorf("%s: the base has another keyid than %s", v.Name, id)
		}
	}
}

func TestLoad(t *testing.T) {
	for _, v := range vectors[fileVector](t, "keyfiles.json") {
		path := filepath.Join(t.TempDir(), v.Name+".pem")
		write(t, path, v.data(t))
		key, err := Load(path)
		if v.Mistake == "" {
			if err != nil || key.ID() != v.KeyID {
				t.Errorf("%s: got %v, want the key %s", v.Name, err, v.KeyID)
			}
			continue
		}
		wantError(t, v.Name, err, path, v.Mistake, "robotsgate keys new ")
	}
}

// TestLoadOthers: files that the vectors do not have.
func TestLoadOthers(t *testing.T) {
	const (
		begin = "-----BEGIN PRIVATE KEY-----\n"
		body  = "MC4CAQAwBQYDK2VwBCIEILXb6ORTdKBmHXlZp1/xV/5E2eTq0ksOt5KcQA0AaBzG\n"
		end   = "-----END PRIVATE KEY-----\n"
		good  = begin + body + end
		two   = "3zX4ZTuWzsy7R8qB0apIF_NinHsfq8PFN0JA_d0m96w"
	)
	for _, c := range []struct{ name, text, want string }{
		{"64 KiB", good + strings.Repeat("x", 64<<10-len(good)), two},
		{"more than 64 KiB", good + strings.Repeat("x", 64<<10-len(good)+1), "!larger than 64 KiB"},
		{"a certificate", good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", two},
		{"only a certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "!no private key"},
		{"a damaged key beside", begin + body[:9] + "\n" + end + good, "!more than one"},
		{"a key without an end beside", good + begin + body, "!more than one"},
		{"without an end", begin + body, "!damaged or cut short"},
		{"the same key twice", good + good, "!more than one"},
		{"encrypted in the old way", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", "!encrypted"},
		{"empty block", begin + end, "!Ed25519"},
		{"base64 of the key", body, "!no PEM block"},
	} {
		path := filepath.Join(t.TempDir(), "key.pem")
		write(t, path, []byte(c.text))
		key, err := Load(path)
		if mistake, refused := strings.CutPrefix(c.want, "!"); refused {
			wantError(t, c.name, err, path, mistake, "robotsgate keys new ")
		} else if err != nil || key.ID() != c.want {
			t.Errorf("%s: got %v, want the key %s", c.name, err, c.want)
		}
	}
}

func TestLoadNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir)
	wantError(t, "a folder", err, dir, "not a regular file", "robotsgate keys new FILE")
	missing := filepath.Join(dir, "missing.pem")
	_, err = Load(missing)
	wantError(t, "no file", err, missing, "no such file", "robotsgate keys new "+missing)
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return // root may read every file
	}
	path := filepath.Join(dir, "key.pem")
	write(t, path, nil)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err = Load(path)
	wantError(t, "mode 0", err, path, "no permission", "robotsgate keys new FILE")
}

func TestExposed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	write(t, path, nil)
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o644: true, 0o611: false, 0o622: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got, exposed := Exposed(path); exposed != want || got != mode {
			t.Errorf("mode %o: got %o, %v, want %v", mode, got, exposed, want)
		}
	}
	if _, exposed := Exposed(path + ".missing"); exposed {
		t.Error("a file that does not exist can be read by others")
	}
}

// TestKeyHidden: no way of printing or encoding a key shows the private key.
func TestKeyHidden(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := New(private)
	h := struct {
		Key    *Key
		Value  Key
		hidden *Key
		value  Key
	}{key, *key, key, *key}
	var out bytes.Buffer
	for _, v := range []any{key, *key, h, &h, []any{key, h}, map[string]any{"key": key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(text)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", v)
	}
	for _, b := range [][]byte{private.Seed()[:8], private[:8]} {
		for _, secret := range []string{string(b), fmt.Sprintf("%x", b), fmt.Sprintf("%X", b), strings.Trim(fmt.Sprint(b), "[]"), base64.RawStdEncoding.EncodeToString(b)[:10]} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("the output has the private key as %q", secret)
			}
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantError checks that err has all parts, the first one at its beginning.
func wantError(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want one with %q", name, parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) || !strings.HasPrefix(err.Error(), parts[0]+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want %q in one line", name, err, part)
		}
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	key, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := Load(path); err != nil || read.ID() != key.ID() {
		t.Errorf("read again: %v, want the key %s", err, key.ID())
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(before), "-----BEGIN PRIVATE KEY-----\n") || len(before) != 119 {
		t.Errorf("the file has %d bytes in another form than that of openssl", len(before))
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), path+": ") {
		t.Errorf("got %v, want that the file exists", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}
	if _, err := Create(filepath.Join(path, "key.pem")); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("below a file: got %v", err)
	}
}
