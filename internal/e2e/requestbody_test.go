package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// pythonServer serves files over HTTP/1.1 with Python's http.server.
const pythonServer = `
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
`

// smuggled is a body that is a request.
const smuggled = "GET /private/x HTTP/1.1\r\nHost: a\r\n\r\n"

// TestRequestBodies: http.server and webfs never read the body of a GET, and take it for the next request. Through the
// gate they do not answer it, and the next client gets the page that it has asked for.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct {
		path, install string
		command       func(path, site, log string, address netip.AddrPort) *exec.Cmd
	}{
		"http.server": {"python3", "python3", func(path, site, log string, a netip.AddrPort) *exec.Cmd {
			cmd := exec.Command("sh", "-c", `exec "$@" 2>>"$LOG"`, "sh", path, "-u", "-c", pythonServer, a.Addr().String(), fmt.Sprint(a.Port()))
			cmd.Dir, cmd.Env = site, append(os.Environ(), "LOG="+log)
			return cmd
		}},
		"webfs": {"webfsd", "webfs", func(path, site, log string, a netip.AddrPort) *exec.Cmd {
			return exec.Command(path, "-F", "-L", log, "-r", site, "-i", a.Addr().String(), "-p", fmt.Sprint(a.Port()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(server.path)
			if err != nil {
				t.Skipf("%s is not installed: Debian's package %s has it", server.path, server.install)
			}
			dir := publicDir(t)
			site, logFile := filepath.Join(dir, "site"), filepath.Join(dir, "log")
			writeSite(t, site)
			ports := newPorts()
			address, err := ports.get(name)
			if err != nil {
				t.Fatal(err)
			}
			o := ports.release()[name]
			runServer(t, server.command(path, site, logFile, netip.MustParseAddrPort(address)))
			waitForRobots(t, name, o)

			if answers := pipelined(t, address); !strings.Contains(answers, "disallowed: /private/x") {
				t.Fatalf("the server reads bodies, so that this test shows nothing: %q", answers)
			}
			before := requestsFor(t, logFile, "/private/x")
			if before == 0 {
				t.Fatal("the server's log does not have the request in the body")
			}
			for setting, egress := range map[string]string{"as installed": "idle_timeout: 90s", "one connection": "max_conns_per_host: 1"} {
				t.Run(setting, func(t *testing.T) {
					client := gatetest.Client(t, "http://"+startGate(t, egress))
					for _, r := range []struct {
						method, body string
						fields       []string
					}{
						{"GET", smuggled, nil}, {"HEAD", smuggled, nil}, {"POST", smuggled, nil}, {"DELETE", smuggled, nil}, {"OPTIONS", smuggled, nil},
						{"GET", smuggled, []string{"Expect", "100-continue"}}, // http.server answers 100 and does not read it
						{"GET", smuggled, []string{"Transfer-Encoding", "chunked"}},
						{"GET", strings.Repeat(smuggled, 100_000), nil},
					} {
						for range 5 {
							_, _ = exchange(t, client, r.method, "http://"+address+"/public/x", r.body, r.fields)
							status, page := exchange(t, client, "GET", "http://"+address+"/a/c.html", "", nil)
							if status != "200 OK" || page != "allowed: /a/c.html\n" {
								t.Errorf("after %s with %d bytes and %q: got %s %q", r.method, len(r.body), r.fields, status, page)
							}
						}
					}
				})
			}
			if after := requestsFor(t, logFile, "/private/x"); after != before {
				t.Errorf("through the gate the server received %d disallowed requests", after-before)
			}
		})
	}
}

// exchange sends a request. The origin may end the connection before it has received the whole body.
func exchange(t *testing.T, c *http.Client, method, url, body string, fields []string) (status, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body = http.NoBody
	}
	if len(fields) > 0 && fields[0] == "Transfer-Encoding" {
		req.ContentLength = -1
	} else if len(fields) > 0 {
		req.Header.Set(fields[0], fields[1])
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := c.Do(req)
	if err != nil {
		if body != "" {
			return "", ""
		}
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	return resp.Status, string(page)
}

// pipelined returns what a server sends for a request with a body, and for one more on the same connection: webfs logs
// the last request of a connection twice.
func pipelined(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTimeout))
	fmt.Fprintf(conn, "GET /public/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%sGET /public/x HTTP/1.1\r\nHost: a\r\n\r\n", len(smuggled), smuggled)
	reader := bufio.NewReader(conn)
	var answers strings.Builder
	for range 3 {
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		io.Copy(&answers, resp.Body)
	}
	return answers.String()
}

// requestsFor counts the requests for a path in a server's log.
func requestsFor(t *testing.T, log, path string) int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), path)
}
