package main

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestReadmeLogin runs a gate with docs/configuration.md's example of logins, and
// sends a request through the proxy URL that the page gives for it.
func TestReadmeLogin(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin, err := gatetest.StartOrigin(filepath.Join(dir, "site"), filepath.Join(dir, "origin.log"), filepath.Join(dir, "origin-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	config := ""
	for _, block := range blocks(t, "yaml") {
		if strings.Contains(block, "password_bcrypt") {
			config = block
		}
	}
	file := filepath.Join(dir, "gate.yaml")
	write(t, file, config+"listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nlog: {audit: audit.jsonl}\negress: {allow_private: [127.0.0.0/8]}\n")
	gate, err := gatetest.StartGate(exec.Command("robotsgate", "serve", "-c", file), t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`-x http://(\w+):(\S+)@127`).FindStringSubmatch(read(t, "docs/configuration.md"))
	if example == nil {
		t.Fatal("docs/configuration.md does not show a proxy's URL with a login")
	}
	for _, c := range []struct {
		user   *url.Userinfo
		status int
	}{{url.UserPassword(example[1], example[2]), 200}, {nil, 407}} {
		proxy, err := url.Parse(gate.Proxy)
		if err != nil {
			t.Fatal(err)
		}
		proxy.User = c.user
		client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
		resp, err := client.Get("http://" + origin.HTTP + "/page.txt")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("as %v: status %d, want %d", c.user, resp.StatusCode, c.status)
		}
	}
	if err := gate.Terminate(); err != nil {
		t.Errorf("the gate ends with %v", err)
	}
	if log := read(t, filepath.Join(dir, "audit.jsonl")); !strings.Contains(log, `"crawler":"news"`) {
		t.Errorf("the record does not name the crawler:\n%s", log)
	}
}
