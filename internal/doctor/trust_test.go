package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"robotsgate/internal/ca"
)

// TestTrustFault has files that SSL_CERT_FILE and similar variables may name.
func TestTrustFault(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data ...[]byte) string {
		path := filepath.Join(dir, name)
		var all []byte
		for _, d := range data {
			all = append(all, d...)
		}
		if err := os.WriteFile(path, all, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newCA := func(name string) *ca.Authority {
		a, err := ca.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ours, others := newCA("ours").PEM(), newCA("others").PEM()
	own, bundle, foreign := file("ca.pem", ours), file("bundle.pem", ours, others), file("foreign.pem", others)
	text := file("text", []byte("a host's name\n"))
	for _, c := range []struct{ use, file, want string }{
		{"ca", own, ""},
		{"ca", bundle, ""},
		{"ca", foreign, "does not hold the gate's CA"},
		{"ca", text, "does not hold the gate's CA"},
		{"ca", dir, "can't be read"},
		{"bundle", bundle, ""},
		{"bundle", own, "holds the gate's CA alone: its clients trust no host that is reached without interception"},
		{"bundle", foreign, "does not hold the gate's CA"},
		{"wgetrc", file("good", []byte("tries = 3\nCA-Certificate = "+bundle+"\n")), ""},
		{"wgetrc", file("last", []byte("ca_certificate="+bundle+"\nca_certificate="+text+"\n")), "names " + text + ", which does not hold the gate's CA"},
		{"wgetrc", text, "has no line with ca_certificate"},
	} {
		if got := trustFault(c.file, c.use, certificatesIn(ours)); got != c.want {
			t.Errorf("%s as %s: got %q, want %q", c.file, c.use, got, c.want)
		}
	}
	// If the gate's CA is not known, any certificate will do.
	if got := trustFault(foreign, "bundle", nil); got != "" {
		t.Error(got)
	}
	if got, want := trustFault(text, "bundle", nil), "holds no certificate"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
