package origin

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"robotsgate/internal/ca"
)

// patience bounds every wait for what should happen at once.
const patience = 10 * time.Second

// newTransport returns a Transport, which is closed when the test ends.
func newTransport(t *testing.T, c Config, d *Conns) *Transport {
	t.Helper()
	u, err := New(c, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// localLeaf returns a certificate for 127.0.0.1.
func localLeaf(t *testing.T) *tls.Certificate {
	t.Helper()
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func wantStatus(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		t.Errorf("%s, want %d", resp.Status, want)
	}
}
