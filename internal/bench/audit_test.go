//go:build unix

package bench

import (
	"net/http"
	"os/exec"
	"testing"
)

// BenchmarkAudit compares a gate with an audit log with one without. Both have
// everything else on.
func BenchmarkAudit(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	gate := func(config string) *gate {
		g := serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, b.TempDir(), config)), "")
		b.Cleanup(g.stop)
		return g
	}
	get := plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k"))
	var sets [gates][]contender
	for i := range sets {
		sets[i] = []contender{
			{&gate("robots: {cache_bytes: 512MiB}\n").proxy, get, "without-audit"},
			{&gate(everything).proxy, get, "with-audit"},
		}
	}
	compare(b, aLongTurn, sets[:]...)
}
