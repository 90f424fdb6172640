//go:build unix

package bench

import (
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"robotsgate/internal/store"
	"robotsgate/policy/snapshot"
)

// BenchmarkStart reports the time from the start of a gate until it is ready, with many
// snapshots in its store and with none.
func BenchmarkStart(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	for _, n := range []int{0, inRotation} {
		b.Run(fmt.Sprintf("%d-snapshots", n), func(b *testing.B) {
			dir := b.TempDir()
			file := o.writeConfig(b, dir, "")
			fillStore(b, filepath.Join(dir, "data"), n, o.origin)
			untilReady(b, exec.Command(program, "serve", "-c", file)) // makes the CA
			all := make([]float64, 9)
			for b.Loop() {
				for i := range all {
					all[i] = untilReady(b, exec.Command(program, "serve", "-c", file)).Seconds() * 1e3
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(all), "ms")
		})
	}
}

// fillStore stores a robots.txt of 1.5 KB for each of n origins.
func fillStore(b *testing.B, dir string, n int, origin func(n int) string) {
	b.Helper()
	d, err := store.Open(dir, store.Limits{Keep: time.Hour, Bytes: 10 << 30}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	const batch = 5000
	for from := 0; from < n; from += batch {
		sets := map[string]snapshot.Set{}
		for i := from; i < min(from+batch, n); i++ {
			body := fmt.Sprintf("# %d\n%s", i, robotsTxt(50))
			s := &snapshot.Snapshot{URL: origin(i) + "/robots.txt", Status: 200, Fetched: time.Now(), SHA256: snapshot.Digest(body), Lifetime: -1}
			sets[origin(i)] = snapshot.Set{Good: s, Last: s, Body: []byte(body)}
		}
		if err := d.Save(b.Context(), sets); err != nil {
			b.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
}

// untilReady starts a gate, waits until it is ready, and stops it.
func untilReady(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	begun := time.Now()
	g := serving(b, cmd, "")
	for {
		resp, err := http.Get(g.admin + "/readyz")
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
	}
	took := time.Since(begun)
	g.stop()
	return took
}
