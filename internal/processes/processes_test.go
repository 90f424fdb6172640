package processes

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestNoRequests: the likely causes name what was seen of the command, and nothing else.
func TestNoRequests(t *testing.T) {
	for _, test := range []struct {
		name, environ string
		want          string // in one line
		not           string
	}{
		{"node", "A=b\x00HTTPS_PROXY=http://127.0.0.1:1\x00", "node ran: Node ignores", "missing"},
		{"curl", "PATH=/bin\x00https_proxy=\x00", "proxy variables were missing in: curl", "ran:"},
		{"curl", "", "no_proxy", "missing"},
		{"curl", "PATH=/bin\x00HO", "no_proxy", "missing"},
		{"firefox-esr", "", "firefox-esr ran: Firefox may", "Node"},
		{"chromium", "type=renderer --lang=en-US\x00\x00\x00\x00", "chromium ran: Chromium and Chrome may use", "missing"},
		{"java", "", "java ran: Java ignores", "Node"},
	} {
		var p Seen
		p.note(test.name, []byte(test.environ))
		lines := NoRequests(p, 0)
		text := strings.Join(lines, "\n")
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, test.want) }) || strings.Contains(text, test.not) {
			t.Errorf("%s with %q:\n%s", test.name, test.environ, text)
		}
	}
}

// TestLook: a process and its children are found, with their environments.
func TestLook(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	cmd := exec.Command("sh", "-c", "cat; true") // a shell with a child
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	in.Write([]byte("x"))
	out.Read(make([]byte, 1)) // cat runs
	var p Seen
	p.look(cmd.Process.Pid)
	if len(p.names) < 2 || !slices.Equal(p.names, p.cleared) {
		t.Errorf("got %q, without a proxy %q, want a shell and cat in both", p.names, p.cleared)
	}
}
