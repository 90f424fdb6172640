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
	compareGates(b, named{"without-audit", "robots: {cache_bytes: 512MiB}\n"}, named{"with-audit", everything})
}

// A named configuration is that of one of the gates that are compared.
type named struct{ name, config string }

// compareGates compares gates with two configurations at 1 KiB.
func compareGates(b *testing.B, first, second named) {
	o, program := newOrigins(b), buildGate(b)
	get := plain(http.StatusOK, same("http://127.0.0.2:"+o.few+"/1k"))
	gate := func(c named) contender {
		g := serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, b.TempDir(), c.config)), "")
		b.Cleanup(g.stop)
		return contender{&g.proxy, get, c.name}
	}
	var sets [gates][]contender
	for i := range sets {
		sets[i] = []contender{gate(first), gate(second)}
	}
	compare(b, aLongTurn, sets[:]...)
}
