package e2e

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// gunicornApp answers with the path that it receives from gunicorn.
const gunicornApp = `
def app(environ, start_response):
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/robots.txt":
        return [b"User-agent: *\nDisallow: /private/\n"]
    return [("page " + path).encode()]
`

// TestGunicornScriptName: gunicorn removes the prefix in the header SCRIPT_NAME from the path. The
// gate must not pass this header on.
func TestGunicornScriptName(t *testing.T) {
	origin := startGunicorn(t)
	direct := gatetest.Client(t, "")
	gated := gatetest.Client(t, "http://"+startGate(t))
	for _, name := range []string{"SCRIPT_NAME", "script_name", "Script_Name"} {
		if got, want := getWith(t, direct, origin, name), "200 OK page /private/x"; got != want {
			t.Errorf("%s, directly: got %s, want %s", name, got, want)
		}
		if got, want := getWith(t, gated, origin, name), "200 OK page /public/private/x"; got != want {
			t.Errorf("%s, through the gate: got %s, want %s", name, got, want)
		}
	}
}

// getWith requests an allowed path with the header that turns it into a disallowed one.
func getWith(t *testing.T, c *http.Client, origin, header string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, origin+"/public/private/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header[header] = []string{"/public"}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + " " + string(body)
}

// startGunicorn returns the origin of a gunicorn that serves gunicornApp.
func startGunicorn(t *testing.T) string {
	t.Helper()
	gatetest.Long(t)
	path, err := exec.LookPath("gunicorn")
	if err != nil {
		t.Skip("gunicorn is not installed: Debian's package gunicorn has it")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(gunicornApp), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--bind", "127.0.0.1:0", "--worker-tmp-dir", dir, "app:app")
	cmd.Dir = dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			t.Log(lines.Text())
			if _, after, ok := strings.Cut(lines.Text(), "Listening at: "); ok {
				origin, _, _ := strings.Cut(after, " ")
				listens <- origin
			}
		}
		cmd.Wait()
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Error("gunicorn did not end within 30 s")
			cmd.Process.Kill()
			<-done
		}
	})
	var origin string
	select {
	case origin = <-listens:
	case <-done:
		t.Fatal("gunicorn ended")
	case <-time.After(30 * time.Second):
		t.Fatal("gunicorn did not listen within 30 s")
	}
	return origin
}
