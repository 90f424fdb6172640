package origin_test

import (
	"io"
	"net/http"
	"testing"

	"robotsgate/proxy/internal/proxytest"
)

// TestFirstVisit: an origin's robots.txt and its first page come over one connection.
func TestFirstVisit(t *testing.T) {
	for name, robotsTxt := range map[string]http.HandlerFunc{
		"a file": nil,
		"a file in chunks": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, proxytest.ExampleRobots)
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{RobotsTxt: robotsTxt})
			for _, origin := range []string{g.HTTP, g.HTTPS} {
				if resp, body := g.Get(origin + "/page"); resp.StatusCode != http.StatusOK {
					t.Fatalf("got %s: %s", resp.Status, body)
				}
				if seen := g.TakeRequests(); len(seen) != 2 || seen[0].RemoteAddr != seen[1].RemoteAddr {
					t.Errorf("%s saw %d requests, over more than one connection", origin, len(seen))
				}
			}
		})
	}
}
