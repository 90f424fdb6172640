//go:build unix

package bench

import (
	"crypto/ed25519"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

const signingKey = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEILXb6ORTdKBmHXlZp1/xV/5E2eTq0ksOt5KcQA0AaBzG\n-----END PRIVATE KEY-----\n"

// BenchmarkSigned compares a gate that signs every request with one that signs none, at 1 KiB. It reports the
// requests per second of both, and the ratio of the first to the ceiling that Ed25519 alone sets: where all processors are
// busy, a request takes the time that it takes unsigned, and that of one signature.
func BenchmarkSigned(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	get := plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k"))
	gate := func(crawlers string) contender {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte(signingKey), 0o600); err != nil {
			b.Fatal(err)
		}
		g := serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, dir, everything+crawlers)), "")
		b.Cleanup(g.stop)
		return contender{&g.proxy, get, ""}
	}
	unsigned := gate("crawlers: [{name: a}]\n")
	signed := gate("crawlers: [{name: a, sign: {key_file: key.pem, agent: https://bots.example.com}}]\n")
	rate := func(c contender) (r result) {
		r, err := c.take(aTurn)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	for b.Loop() {
		var without, with, alone, ceilings, allocs []float64
		rate(unsigned)
		rate(signed)
		for range rounds {
			u, s, t := rate(unsigned), rate(signed), signatureTime()
			without, with, alone = append(without, u.perSecond), append(with, s.perSecond), append(alone, t*1e6)
			n := float64(runtime.NumCPU())
			ceilings = append(ceilings, s.perSecond/(n/(n/u.perSecond+t)))
			allocs = append(allocs, s.cost.allocs-u.cost.allocs)
		}
		b.ReportMetric(0, "ns/op") // has no meaning here
		b.ReportMetric(median(without), "unsigned/s")
		b.ReportMetric(median(with), "signed/s")
		b.ReportMetric(median(alone), "ed25519-µs")
		b.ReportMetric(median(ceilings), "of-ceiling")
		b.ReportMetric(median(allocs), "more-allocs/req")
	}
}

// signatureTime returns the seconds that crypto/ed25519 takes for a signature while all processors make some.
func signatureTime() float64 {
	key, message := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), make([]byte, 500)
	const each = 5000
	begun := time.Now()
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for range each {
				ed25519.Sign(key, message)
			}
		})
	}
	all.Wait()
	return time.Since(begun).Seconds() / each
}
