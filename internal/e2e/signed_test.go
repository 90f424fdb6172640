package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dadrus/httpsig"

	"robotsgate/internal/gatetest"
)

// The public key of the private key below, as in a JWK.
const (
	publicID = "3zX4ZTuWzsy7R8qB0apIF_NinHsfq8PFN0JA_d0m96w"
	publicX  = "ro8Nx7IoFQ5LT_KeJqHSEImPIEQoE3cqFUqSvnDf89M"
)

// publicKey resolves the id of that key only.
type publicKey struct{}

func (publicKey) ResolveKey(_ context.Context, id string) (httpsig.Key, error) {
	x, err := base64.RawURLEncoding.DecodeString(publicX)
	if err != nil || id != publicID {
		return httpsig.Key{}, fmt.Errorf("no key %q: %w", id, err)
	}
	return httpsig.Key{KeyID: id, Algorithm: httpsig.Ed25519, Key: ed25519.PublicKey(x)}, nil
}

// TestWebBotAuth: 1,000 requests that the gate has signed are valid to the npm package web-bot-auth, which knows
// the form of Signature-Agent that is a string, and to a second verifier in Go.
func TestWebBotAuth(t *testing.T) {
	gatetest.Long(t)
	mustHaveModule(t, "web-bot-auth")
	var mu sync.Mutex
	var requests bytes.Buffer
	enc := json.NewEncoder(&requests)
	verifier, err := httpsig.NewVerifier(publicKey{}, httpsig.WithRequiredTag("web-bot-auth", httpsig.WithRequiredComponents("@authority", "@method", "@path", "signature-agent")))
	if err != nil {
		t.Fatal(err)
	}
	verified := 0
	record := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := map[string]string{}
		for name := range r.Header {
			headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		mu.Lock()
		defer mu.Unlock()
		u := *r.URL
		u.Scheme, u.Host = strings.TrimSuffix(scheme, "://"), r.Host
		if err := verifier.Verify(&httpsig.Message{Context: r.Context(), IsRequest: true, Method: r.Method, Authority: r.Host, URL: &u, Header: r.Header}); err != nil {
			t.Error(err)
		} else {
			verified++
		}
		if err := enc.Encode(map[string]any{"method": r.Method, "url": scheme + r.Host + r.RequestURI, "headers": headers}); err != nil {
			t.Error(err)
		}
	})
	plain, secure := httptest.NewServer(record), httptest.NewUnstartedServer(record)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	dir := t.TempDir()
	key := filepath.Join(dir, "key.pem")
	gatetest.Write(t, key, "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEILXb6ORTdKBmHXlZp1/xV/5E2eTq0ksOt5KcQA0AaBzG\n-----END PRIVATE KEY-----\n")
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	gatetest.Write(t, filepath.Join(dir, "origin.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	gate := gatetest.Serve(t, dir, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: ""}
data_dir: %s
egress: {allow_private: [127.0.0.0/8], ca_file: %s}
crawlers:
- name: news
  sign: {key_file: %s, agent: https://bots.example.com}
`, filepath.Join(dir, "data"), filepath.Join(dir, "origin.pem"), key))
	proxy, err := url.Parse(gate.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(gatetest.Read(t, filepath.Join(dir, "data", "ca.pem"))))
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	const each = 500 - 1 // and robots.txt
	for _, origin := range []string{plain.URL, secure.URL} {
		for i := range each {
			method := []string{"GET", "HEAD", "POST", "DELETE"}[i%4]
			gatetest.Request(t, client, method, fmt.Sprintf("%s/page%d/%%7ea;b?x=%d", origin, i, i), 200)
		}
	}
	cmd := exec.Command(node(), "testdata/clients/webbotauth.mjs", `{"kty":"OKP","crv":"Ed25519","kid":"`+publicID+`","x":"`+publicX+`"}`)
	mu.Lock()
	if verified != 1000 {
		t.Errorf("the second verifier has accepted %d requests, want 1000", verified)
	}
	cmd.Stdin = &requests
	mu.Unlock()
	out, err := cmd.CombinedOutput()
	if want := "1000 valid, 1000 nonces\n"; err != nil || string(out) != want {
		t.Errorf("got %v, %s, want %s", err, out[:min(len(out), 2000)], want)
	}
}
