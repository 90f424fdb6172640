package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// TestFloodOfLogins tries wrong passwords from one address, always as many at a time as
// may wait, while others log in for the first time: they must not wait for what is in
// front of them there, wherever they come from.
func TestFloodOfLogins(t *testing.T) {
	const atOnce = 60
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin := gatetest.ServeFiles(t, filepath.Join(dir, "site"), dir)
	hash := func(password string) string {
		h, err := bcrypt.GenerateFromPassword([]byte(password), 7)
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
	gate := gatetest.Serve(t, dir, fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nunknown_clients: refuse\n"+
		"crawlers:\n- {name: a, login: {user: a, password_bcrypt: %[1]q}}\n- {name: a2, login: {user: a, password_bcrypt: %[2]q}}\n- {name: b, login: {user: b, password_bcrypt: %[1]q}}\n"+
		"egress: {allow_private: [127.0.0.0/8]}\n", hash("right"), hash("also right")))

	get := func(from, user, password string) (int, error) {
		proxy, err := url.Parse(gate.Proxy)
		if err != nil {
			return 0, err
		}
		proxy.User = url.UserPassword(user, password)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DialContext: dialer.DialContext, DisableKeepAlives: true}}
		resp, err := client.Get("http://" + origin.HTTP + "/page.txt")
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	if _, err := get("127.0.0.5", "a", "wrong"); err != nil {
		t.Skipf("this machine has one loopback address only: %v", err)
	}
	var compared, sent atomic.Int64
	stop := make(chan struct{})
	for range atOnce {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status, err := get("127.0.0.5", "a", fmt.Sprint("wrong ", sent.Add(1))); err == nil && status == http.StatusProxyAuthRequired {
					compared.Add(1)
				}
			}
		}()
	}
	defer close(stop)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); compared.Load() < 5 || sent.Load() < atOnce; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("the flood does not come: %d of %d have been compared", compared.Load(), sent.Load())
		}
	}
	for _, c := range []struct{ from, user, password string }{
		{"127.0.0.5", "b", "right"},      // the same address, another name
		{"127.0.0.1", "a", "right"},      // another address
		{"127.0.0.6", "a", "right"},      // known by now
		{"127.0.0.5", "a", "also right"}, // the same of both
	} {
		before := compared.Load()
		status, err := get(c.from, c.user, c.password)
		if err != nil || status != http.StatusOK {
			t.Errorf("%s from %s: %d, %v", c.user, c.from, status, err)
		}
		n := compared.Load() - before
		t.Logf("%s from %s: %d wrong passwords were answered meanwhile", c.user, c.from, n)
		if n > atOnce/2 {
			t.Errorf("%s from %s waited for %d wrong passwords", c.user, c.from, n)
		}
	}
}
