//go:build linux && (amd64 || arm64)

package attempts

import (
	"slices"
	"strings"
	"testing"
)

// TestResults has reports of attempts that claim to have got out. Only a target's token and a target's
// secret count.
func TestResults(t *testing.T) {
	o := &Outside{Secret: "secret-OUTSIDE", reached: map[string]bool{}}
	o.World = World{Run: "rg" + strings.Repeat("0", 26), Missing: map[string]string{"ipv6": "no IPv6"}}
	o.Record([]byte("GET /" + o.World.Token("tcp4-local") + " HTTP/1.1"))
	o.Record([]byte("rg" + strings.Repeat("1", 26) + "-tcp4-loopback.")) // of another run
	o.Record(append([]byte("\x1a"), strings.ReplaceAll(o.World.Token("dns-udp"), ".", "\x07outside")...))
	var reports strings.Builder
	reports.WriteString(o.World.Token("unix-run") + "\n")
	for _, a := range All() {
		seen := "permission denied"
		switch a.Name {
		case "key-by-number":
			seen = "secret-OUTSIDE"
		case "fd-folder":
			seen = "secret-INSIDE"
		}
		reports.WriteString(`{"Name":"` + a.Name + `","Seen":"` + seen + `"}` + "\n")
	}
	results, err := o.Results(All(), []byte(reports.String()))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, r := range results {
		if r.Out {
			out = append(out, r.Name)
		}
		if needs := All()[i].Needs; (r.Skipped != "") != slices.Contains(needs, "ipv6") {
			t.Errorf("%s, which needs %v: got skipped %q", r.Name, needs, r.Skipped)
		}
	}
	slices.Sort(out)
	if want := []string{"dns-udp", "key-by-number", "tcp4-local"}; !slices.Equal(out, want) {
		t.Errorf("got out: %v, want %v", out, want)
	}
	if _, err := o.Results(All(), []byte(`{"Name":"tcp4-local"}`+"\n")); err == nil {
		t.Error("no error although attempts are missing")
	}
}
