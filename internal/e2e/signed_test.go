package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
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

	"robotsgate/internal/gatetest"
)

// TestWebBotAuth: 1,000 requests that the gate has signed are valid to the npm package web-bot-auth, which knows
// the form of Signature-Agent that is a string.
func TestWebBotAuth(t *testing.T) {
	gatetest.Long(t)
	mustHaveModule(t, "web-bot-auth")
	var mu sync.Mutex
	var requests bytes.Buffer
	enc := json.NewEncoder(&requests)
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
	cmd := exec.Command(node(), "testdata/clients/webbotauth.mjs", `{"kty":"OKP","crv":"Ed25519","kid":"3zX4ZTuWzsy7R8qB0apIF_NinHsfq8PFN0JA_d0m96w","x":"ro8Nx7IoFQ5LT_KeJqHSEImPIEQoE3cqFUqSvnDf89M"}`)
	mu.Lock()
	cmd.Stdin = &requests
	mu.Unlock()
	out, err := cmd.CombinedOutput()
	if want := "1000 valid, 1000 nonces\n"; err != nil || string(out) != want {
		t.Errorf("got %v, %s, want %s", err, out[:min(len(out), 2000)], want)
	}
}
