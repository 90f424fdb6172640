package proxy

import (
	"testing"

	"robotsgate/policy/canonical"
)

// The names of a tunnel, kept since CONNECT, are the same as parsed anew.
func TestTunnelNames(t *testing.T) {
	hosts := []string{"shop.example", "Shop.EXAMPLE.", "127.0.0.1", "[::1]", "[0:0::1]", "xn--bcher-kva.example", "under_score.example"}
	servers := []string{"", "shop.example", "SHOP.example", "shop.example.", "a.shop.example", "127.0.0.1", "::1", "[::1]", "xn--bcher-kva.example", "shop.example:443", "a b", "under_score.example"}
	for _, host := range hosts {
		for _, port := range []string{"443", "80", "8080"} {
			target, err := canonical.ParseTarget("https", host+":"+port, "/")
			if err != nil {
				t.Fatal(err)
			}
			tunnel := newTunnel(&opening{target: target})
			for _, scheme := range []string{"http", "https"} {
				again, err := canonical.ParseTarget(scheme, tunnel.authority, "/")
				if got, want := tunnel.leadsTo(scheme), again.Origin(); err != nil || got != want {
					t.Errorf("%s:%s: the origin for %s is %s, want %s", host, port, scheme, got, want)
				}
			}
			for _, server := range servers {
				named, err := canonical.ParseTarget("https", server, "/")
				want := server == "" || err == nil && named.Hostname() == target.Hostname()
				if got := tunnel.names(server); got != want {
					t.Errorf("%s:%s: names %q: %v, want %v", host, port, server, got, want)
				}
			}
			if again, err := canonical.ParseTarget("https", bracketed(tunnel.host), "/"); err != nil || again.Hostname() != tunnel.host {
				t.Errorf("%s:%s: the host %s is not canonical", host, port, tunnel.host)
			}
		}
	}
}
