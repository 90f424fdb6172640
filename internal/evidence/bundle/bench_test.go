package bundle

import (
	"bytes"
	"os"
	"strconv"
	"testing"
	"time"

	"robotsgate/internal/audit"
)

// BenchmarkBundle makes and checks a bundle of 100,000 entries about a thousand sites. Each may take 20 s, and the
// process 300 MiB.
func BenchmarkBundle(b *testing.B) {
	const entries = 100_000
	k := newKept(b, 1000)
	w := k.logOf(b, entries, 1000)
	for b.Loop() {
		start := time.Now()
		bundle, m := k.bundle(b, w, &audit.Filter{})
		b.ReportMetric(time.Since(start).Seconds(), "s/bundle")
		start = time.Now()
		c := check(b, bundle, CheckOptions{Keys: []string{w.signer.Key()}})
		b.ReportMetric(time.Since(start).Seconds(), "s/check")
		if !c.OK() || m.Entries != entries || c.Alike != entries {
			b.Errorf("got %+v", c)
		}
	}
	b.ReportMetric(peak(), "MiB-peak")
}

// peak returns the most memory that the process has had, in MiB, as Linux counts it; 0 elsewhere.
func peak() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(text, []byte("VmHWM:"))
	number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
	kib, _ := strconv.ParseFloat(string(number), 64)
	return kib / 1024
}
