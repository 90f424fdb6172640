package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/gatetest"
)

// TestFloodOfLogins tries wrong passwords from one address, always as many at a time as
// may wait, while a client from another logs in for the first time: it must not wait
// for what is in front of it there.
func TestFloodOfLogins(t *testing.T) {
	const atOnce = 60
	dir := t.TempDir()
	write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin, err := gatetest.StartOrigin(filepath.Join(dir, "site"), filepath.Join(dir, "origin.log"), filepath.Join(dir, "origin-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), 8)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gate.yaml")
	write(t, file, fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\nunknown_clients: refuse\n"+
		"crawlers: [{name: a, login: {user: a, password_bcrypt: %q}}]\negress: {allow_private: [127.0.0.0/8]}\n", hash))
	gate, err := gatetest.StartGate(exec.Command("robotsgate", "serve", "-c", file), t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Kill() // it would wait for the flood

	get := func(from, password string) (int, error) {
		proxy, err := url.Parse(gate.Proxy)
		if err != nil {
			return 0, err
		}
		proxy.User = url.UserPassword("a", password)
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
	if _, err := get("127.0.0.5", "wrong"); err != nil {
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
				if status, err := get("127.0.0.5", fmt.Sprint("wrong ", sent.Add(1))); err == nil && status == http.StatusProxyAuthRequired {
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
	for i, from := range []string{"127.0.0.1", "127.0.0.6"} {
		before := compared.Load()
		status, err := get(from, "right")
		if err != nil || status != http.StatusOK {
			t.Errorf("the honest client: %d, %v", status, err)
		}
		n := compared.Load() - before
		t.Logf("%d wrong passwords were answered meanwhile", n)
		if n > atOnce/2 {
			t.Errorf("client %d waited for %d wrong passwords", i+1, n)
		}
	}
}
