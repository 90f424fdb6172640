package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestHonestBesideCostlyDecisions measures requests for an ordinary page while 64 clients request
// paths of a site whose robots.txt is made to be slow to match.
func TestHonestBesideCostlyDecisions(t *testing.T) {
	gatetest.Long(t)
	const clients, requests = 64, 101
	site := func(robots string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				io.WriteString(w, robots)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	honest := site("User-agent: *\nDisallow: /private/\nDisallow: /*.pdf$\n")
	fill := func(line string) string {
		return "User-agent: *\n" + strings.Repeat(line, (511<<10-14)/len(line))
	}
	proxy := startGate(t)
	get := func(client *http.Client, url string) error {
		resp, err := client.Get(url)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	newClient := func() *http.Client {
		return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})}}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// median returns the median duration of an honest client's requests, one at every tick, until
	// enough are answered and done reports true.
	median := func(done func() bool) time.Duration {
		client := newClient()
		defer client.CloseIdleConnections()
		var took []time.Duration
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && (len(took) < requests || !done()); <-tick.C {
			start := time.Now()
			if err := get(client, honest+"/page"); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	idle := median(func() bool { return true })
	for name, costly := range map[string]string{
		"overlapping literals": site(fill("Disallow: /*"+strings.Repeat("ab", 10)+"c\n")) + "/" + strings.Repeat("ab", 8000),
		"encoded octets":       site(fill("Allow:/*\"\"\"\"x\n")) + "/" + strings.Repeat("%22", 5200),
		"beyond the bound":     site(fill("Allow:/*zz*ababababababc\n")) + "/ababababababczz" + strings.Repeat("ab", 8000),
	} {
		var sent, answered atomic.Int64
		var stop atomic.Bool
		var flood sync.WaitGroup
		for range clients {
			flood.Go(func() {
				client := newClient()
				defer client.CloseIdleConnections()
				for !stop.Load() {
					sent.Add(1)
					if err := get(client, costly); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					answered.Add(1)
				}
			})
		}
		for end := time.Now().Add(time.Minute); sent.Load() < clients || answered.Load() < clients/2; <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("%s: %d of %d requests were answered within a minute", name, answered.Load(), sent.Load())
			}
		}
		before := answered.Load()
		loaded := median(func() bool { return answered.Load() >= before+clients })
		meanwhile := answered.Load() - before
		stop.Store(true)
		flood.Wait()
		// On a busy machine an idle gate is slow too.
		most := max(20*time.Millisecond, 10*idle)
		text := fmt.Sprintf("%s: the median of honest requests is %v, on an idle gate %v; %d costly requests were answered during the measurement", name, loaded, idle, meanwhile)
		if loaded > most {
			t.Errorf("%s; want at most %v", text, most)
		}
		t.Log(text)
	}
}
