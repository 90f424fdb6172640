//go:build unix

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"robotsgate/internal/gatetest"
)

var requestLine = regexp.MustCompile(`^\d\d:\d\d:\d\d  ([^ ].*)  default  GET http://shop\.example/(?:page\.txt|private/x  robots\.txt line 2: Disallow: /private/)$`)

// TestRequestLinesOfServe: on a terminal, serve shows the refused requests, unless an option or log.requests says otherwise.
func TestRequestLinesOfServe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		log  string
		want []string // outcomes of an allowed and a refused request
	}{
		{name: "by default", want: []string{"refused"}},
		{name: "--verbose", args: []string{"--verbose"}, want: []string{"200", "refused"}},
		{name: "--quiet", args: []string{"--quiet"}},
		{name: "log.requests", log: "log: {requests: none}\n"},
		{name: "report mode", log: "mode: report\n", want: []string{"would be denied"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			site := filepath.Join(dir, "site")
			gatetest.Write(t, filepath.Join(site, "robots.txt"), "User-agent: *\nDisallow: /private/\n")
			gatetest.Write(t, filepath.Join(site, "page.txt"), "public\n")
			origin, err := gatetest.StartOrigin(site, filepath.Join(dir, "origin.log"), filepath.Join(dir, "origin-ca.pem"))
			if err != nil {
				t.Fatal(err)
			}
			defer origin.Close()
			file := filepath.Join(dir, "gate.yaml")
			gatetest.Write(t, file, "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {proxy: \"http://"+origin.HTTP+"\"}\n"+test.log)
			s := newScreen()
			cmd := exec.Command("robotsgate", append([]string{"serve", "-c", file}, test.args...)...)
			wait := s.start(t, cmd)
			s.shows(t, `export http_proxy`)
			client := gatetest.Client(t, gatetest.Matches(`listens on (http://\S+)`, s.text())[0])
			gatetest.Request(t, client, http.MethodGet, "http://shop.example/page.txt", http.StatusOK)
			refusal := http.StatusForbidden
			if strings.Contains(test.log, "report") {
				refusal = http.StatusNotFound
			}
			gatetest.Request(t, client, http.MethodGet, "http://shop.example/private/x", refusal)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := wait(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range s.lines() {
				if m := requestLine.FindStringSubmatch(line); m != nil {
					got = append(got, m[1])
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q:\n%q", got, test.want, s.text())
			}
		})
	}
}

// TestWarningsOfServe: on a terminal, the log of serve looks like the lines about requests, unless it has to be JSON.
func TestWarningsOfServe(t *testing.T) {
	t.Parallel()
	const stays = "the changed configuration can't be used, the one before stays in force"
	for format, want := range map[string]string{
		"text": `(?m)^\d\d:\d\d:\d\d  error  ` + stays + `  mistake: gate\.yaml:3: .*mode`,
		"json": `(?m)^\{"time":"\S+","level":"ERROR","msg":"` + stays + `","mistake":"gate\.yaml:3: .*mode`,
	} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			file, text := filepath.Join(dir, "gate.yaml"), "{listen: 127.0.0.1:0, data_dir: data, admin: {listen: \"\"}, log: {format: "+format+"}"
			gatetest.Write(t, file, text+"}\n")
			s := newScreen()
			cmd := exec.Command("robotsgate", "serve", "-c", "gate.yaml")
			cmd.Dir = dir
			s.start(t, cmd)
			s.shows(t, `export http_proxy`)
			gatetest.Write(t, file, text+",\n\n mode: enforcing}\n")
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			s.shows(t, want)
		})
	}
}

// TestRequestLinesOfRun: run shows the refused requests between its command's output, on standard
// error.
func TestRequestLinesOfRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "gate.yaml")
	gatetest.Write(t, file, "data_dir: data\n")
	s := newScreen()
	var out strings.Builder
	cmd := exec.Command("robotsgate", "run", "-c", file, "--", "sh", "-c", "echo begin; echo working >&2; fetch http://192.0.2.1/ | head -n 1; echo end")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.Contains(strings.ToLower(v), "_proxy=") })
	cmd.Stdout = &out
	if err := s.start(t, cmd)(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "begin\nHTTP/1.1 403 Forbidden\nend\n"; got != want {
		t.Errorf("standard output has %q, want %q", got, want)
	}
	lines := s.lines()
	if len(lines) != 3 || lines[0] != "working" || !strings.HasPrefix(lines[1], "robotsgate: ") ||
		!strings.Contains(lines[1], "  refused  default  GET http://192.0.2.1/  address 192.0.2.1 ") ||
		!strings.HasPrefix(lines[2], "robotsgate: 1 request, ") {
		t.Errorf("the terminal has %q", lines)
	}
}
