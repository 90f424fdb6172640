//go:build linux && (amd64 || arm64)

package attempts

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTable checks the rows that are only data.
func TestTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, a := range All() {
		if !name.MatchString(a.Name) || seen[a.Name] {
			t.Errorf("%q is no name, or there twice", a.Name)
		}
		seen[a.Name] = true
		if a.Tries == "" || strings.HasSuffix(a.Tries, ".") || a.try == nil {
			t.Errorf("%s: got %q, want what it tries, and a function", a.Name, a.Tries)
		}
		// A token is a label of a name in DNS.
		w := World{Run: "rg0123456789abcdef"}
		if token := w.Token(a.Name); len(token) > 64 || !tokens.MatchString(token) {
			t.Errorf("%s: %q can't be a token", a.Name, token)
		}
	}
	for name := range secretOf {
		if !seen[name] {
			t.Errorf("secretOf names %s, which is no attempt", name)
		}
	}
}

// TestResults has reports of attempts that claim to have got out. Only a target's token and a target's
// secret count.
func TestResults(t *testing.T) {
	o := &Outside{key: []byte("key"), reached: map[string]bool{}}
	o.World = World{Run: "rg0123456789abcdef", Missing: map[string]string{"ipv6": "no IPv6"}}
	o.record([]byte("GET /" + o.World.Token("tcp4-zero") + " HTTP/1.1"))
	o.record([]byte("rgfedcba9876543210-tcp4-local.")) // of another run
	o.record(append([]byte("\x1a"), strings.ReplaceAll(o.World.Token("dns-udp"), ".", "\x07outside")...))
	var reports strings.Builder
	reports.WriteString(`rg0123456789abcdef-proc-fd.` + "\n")
	for _, a := range All() {
		found := ""
		switch a.Name {
		case "ptrace":
			found = o.secret("memory")
		case "proc-mem-read":
			found = o.secret("shared") // not what is there
		case "tcp4-loopback":
			found = o.secret("memory") // it reads nothing
		}
		reports.WriteString(`{"name":"` + a.Name + `","found":["` + found + `"]}` + "\n")
	}
	results, err := o.Results([]byte(reports.String()))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range results {
		if r.Out {
			out = append(out, r.Name)
		}
		if (r.Skipped != "") != slices.Contains(r.Needs, "ipv6") {
			t.Errorf("%s, which needs %v: got skipped %q", r.Name, r.Needs, r.Skipped)
		}
	}
	slices.Sort(out)
	if want := []string{"dns-udp", "ptrace", "tcp4-zero"}; !slices.Equal(out, want) {
		t.Errorf("got out: %v, want %v", out, want)
	}
	if _, err := o.Results([]byte(`{"name":"tcp4-zero"}` + "\n")); err == nil {
		t.Error("no error although attempts are missing")
	}
}
