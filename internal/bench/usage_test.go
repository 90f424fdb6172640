//go:build unix

package bench

import (
	"net/http"
	"os/exec"
	"testing"
)

// BenchmarkUsage compares requests to two origins: one states preferences in robots.txt, the other none.
func BenchmarkUsage(b *testing.B) {
	o, program := newOrigins(b), buildGate(b)
	var sets [gates][]contender
	for i := range sets {
		g := serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, b.TempDir(), everything)), "")
		b.Cleanup(g.stop)
		get := func(host string) *load { return plain(http.StatusOK, same("http://"+host+":"+o.few+"/1k")) }
		sets[i] = []contender{{&g.proxy, get("127.0.0.2"), "none-stated"}, {&g.proxy, get(stating), "stated"}}
	}
	compare(b, aLongTurn, sets[:]...)
}
