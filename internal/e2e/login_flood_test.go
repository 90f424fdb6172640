package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// TestFloodOfLogins sends wrong passwords from one address, always 60 at a time. Other clients
// that log in for the first time must not wait for the wrong passwords that arrived before.
func TestFloodOfLogins(t *testing.T) {
	const atOnce = 60
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin := gatetest.ServeFiles(t, filepath.Join(dir, "site"), dir)
	// The cheapest hash: on a busy machine with the race detector, costlier ones let clients run out of their 10 s in the
	// queue, and those that come back push a login of the same address and user behind (SECURITY.md).
	hash := func(password string) string {
		h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
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
		t.Skipf("this machine has only one loopback address: %v", err)
	}
	var compared, sent atomic.Int64
	stop := make(chan struct{})
	var flood sync.WaitGroup
	for range atOnce {
		flood.Go(func() {
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
		})
	}
	defer flood.Wait()
	defer close(stop)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); compared.Load() < 5 || sent.Load() < atOnce; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d of %d wrong passwords were compared within 30 s", compared.Load(), sent.Load())
		}
	}
	for _, c := range []struct{ from, user, password string }{
		{"127.0.0.5", "b", "right"},      // the same address, another user
		{"127.0.0.1", "a", "right"},      // another address, the same user
		{"127.0.0.6", "a", "right"},      // a password that was verified before
		{"127.0.0.5", "a", "also right"}, // the same address and user
	} {
		before := compared.Load()
		status, err := get(c.from, c.user, c.password)
		if err != nil || status != http.StatusOK {
			t.Errorf("%s from %s: %d, %v", c.user, c.from, status, err)
		}
		n := compared.Load() - before
		t.Logf("%s from %s: %d wrong passwords were answered during this login", c.user, c.from, n)
		if n > atOnce/2 {
			t.Errorf("%s from %s waited for %d wrong passwords", c.user, c.from, n)
		}
	}
}
