package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestReloadUnderLoad changes the configuration again and again during requests, in every way
// in which a file can be replaced. No request and no connection may be lost, and every change
// must take effect.
func TestReloadUnderLoad(t *testing.T) {
	n := gatetest.Size[int64](2000, 100_000)
	dir := t.TempDir()
	origin := gatetest.ServeFiles(t, "testdata/clients/site", dir)
	// The version is the reason of an override, which each response contains.
	text := func(version int) string {
		return fmt.Sprintf(`
listen: 127.0.0.1:0
data_dir: data
egress: {allow_private: [127.0.0.2/32], ca_file: origin-ca.pem, dial_timeout: %ds}
limits: {idle_timeout: 10m}
admin: {listen: ""}
overrides: [{hosts: [127.0.0.2], action: allow, reason: v%d}]
`, 10+version%2, version)
	}
	gate := gatetest.Serve(t, dir, text(0))

	var mu sync.Mutex
	seen := map[string]int64{}
	var asked, made atomic.Int64
	stop, changed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(changed)
		change(t, gate, filepath.Join(dir, "gate.yaml"), text, &made, stop)
	}()
	// Requests continue until each kind of change has been made once.
	done := func(resp *http.Response) bool {
		_, note, _ := strings.Cut(resp.Header.Get("Robots-Gate-Decision"), `note="`)
		version, _, _ := strings.Cut(note, `"`)
		mu.Lock()
		defer mu.Unlock()
		seen[version]++
		return asked.Add(1) < n || made.Load() < 4 && !t.Failed()
	}
	var all sync.WaitGroup
	for _, l := range []gatetest.Load{
		{URLs: []string{"http://" + origin.HTTP + "/page.html", "https://" + origin.HTTPS + "/page.html"}},
		{URLs: []string{"https://" + origin.HTTPS + "/page.html"}, HTTP2: true},
	} {
		l.Proxy, l.CAFile = gate.Proxy, gate.CA
		all.Go(func() {
			if err := l.Run(8, done); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(stop)
	<-changed
	total := int64(0)
	for version, times := range seen {
		if total += times; version == "" {
			t.Errorf("%d responses have no reason of the override", times)
		}
	}
	if total < n || len(seen) < 3 {
		t.Errorf("got %d responses to %d requests, by %d versions; want at least 3 versions", total, n, len(seen))
	}
	t.Logf("%d requests, %d changes, %d versions seen", total, made.Load(), len(seen))
}

// change replaces the gate's configuration until stop is closed, in each way in turn. It counts
// in made the versions that took effect.
func change(t *testing.T, gate *gatetest.Gate, file string, text func(int) string, made *atomic.Int64, stop <-chan struct{}) {
	const reloaded, stays = "has been reloaded", "stays in force"
	good, bad := 0, 0
	aside := file + ".new"
	replace := func(text string) {
		gatetest.Write(t, aside, text)
		if err := os.Rename(aside, file); err != nil {
			t.Error(err)
		}
	}
	hangup := func() {
		if err := gate.Signal(syscall.SIGHUP); err != nil {
			t.Error(err)
		}
	}
	for v := 1; ; v++ {
		select {
		case <-stop:
			return
		default:
		}
		switch v % 4 {
		case 0: // overwrites the file, as some editors do
			gatetest.Write(t, file, text(v))
		case 1: // renames a new file, as other editors do, and sends SIGHUP
			replace(text(v))
			hangup()
		case 2: // renames a symbolic link, as Kubernetes does
			folder := filepath.Join(filepath.Dir(file), fmt.Sprint("..", v))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Error(err)
			}
			gatetest.Write(t, filepath.Join(folder, "config.yaml"), text(v))
			if err := os.Symlink(filepath.Join(filepath.Base(folder), "config.yaml"), aside); err != nil {
				t.Error(err)
			}
			if err := os.Rename(aside, file); err != nil {
				t.Error(err)
			}
		case 3: // a mistake: the old configuration stays in force
			replace("mode: enforcing\n")
			hangup()
			if bad++; !gate.Log.Has(stays, bad) {
				t.Error("the gate does not report the mistake")
				return
			}
			continue
		}
		if good++; !gate.Log.Has(reloaded, good) {
			t.Errorf("version %d does not take effect", v)
			return
		}
		made.Add(1)
	}
}
