package e2e

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"robotsgate/internal/gatetest"
)

// TestTransparent loads the rules of deploy/transparent into network namespaces, and sends requests of curl, which knows
// of no proxy, from there. The namespaces are
//
//	inside ── machine ── web
//
// The gate runs on the machine, and origins in web. The crawlers run inside or on the machine. They connect to
// addresses at which there is nothing, since the gate uses the name only.
func TestTransparent(t *testing.T) {
	needNamespaces(t)
	for _, s := range []scenario{
		{
			name: "host", rules: replaced(t, "host.nft", "{ 1001 }", "{ "+crawlerUser+" }"), user: gateUser,
			from: "machine", as: crawlerUser, own: []string{"127.0.0.1", "[::1]"}, noAdmin: true,
			sources: `["198.51.100.2/32", "2001:db8:1::2/128"]`,
		},
		{
			name: "pod", rules: member(manifests(t, "transparent/kubernetes.yaml")["ConfigMap robotsgate-transparent"], "data", "rules.nft").(string), user: gateUser,
			from: "machine", as: "0", own: []string{"127.0.0.1", "[::1]"}, noAdmin: true,
			sources: `["198.51.100.2/32", "2001:db8:1::2/128"]`,
		},
		{
			name: "router", rules: replaced(t, "router.nft", "", ""), user: gateUser,
			from: "inside", as: crawlerUser, own: []string{"10.77.0.1", "[fd77::1]"},
		},
		{
			name: "router with tproxy", rules: replaced(t, "router-tproxy.nft", "", ""), user: gateUser, capability: "net_admin",
			from: "inside", as: crawlerUser, own: []string{"10.77.0.1", "[fd77::1]"},
			routes: commentedLines(t, "router-tproxy.nft", "ip "),
		},
	} {
		t.Run(s.name, s.run)
	}
}

// TestTransparentLoop: if the rules redirect the gate's own connections too, it refuses these, and says why.
func TestTransparentLoop(t *testing.T) {
	needNamespaces(t)
	s := scenario{
		rules: replaced(t, "host.nft", "{ 1001 }", "{ "+crawlerUser+", "+gateUser+" }"), user: gateUser,
		from: "machine", as: crawlerUser, sources: `["198.51.100.2/32", "2001:db8:1::2/128"]`,
	}
	_, gate, crawl := s.start(t)
	for _, version := range []string{"-4", "-6"} {
		out, err := crawl("curl", "-sS", version, "-m", "30", "-w", "%{http_code}", "--cacert", gate.CA,
			"--resolve", "shop.example.com:443:203.0.113.5,2001:db8:dead::5", "https://shop.example.com/a").CombinedOutput()
		if !strings.HasSuffix(string(out), "403") || !strings.Contains(string(out), "unreachable") {
			t.Errorf("%s: %v, got %s", version, err, out)
		}
	}
	gate.Log.WaitFor(t, "redirected connections are refused: they are the gate's own .*reason=own")
}

// The users of the gate and of the crawlers.
const gateUser, crawlerUser = "10001", "1001"

func needNamespaces(t *testing.T) {
	t.Helper()
	gatetest.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	gatetest.Needs(t, "ip", "nft", "curl", "setpriv", "bash")
}

// A scenario is one way to redirect.
type scenario struct {
	name       string
	rules      string   // of nftables
	routes     []string // commands that the rules need
	user       string   // of the gate
	capability string   // of the gate; empty: none
	from, as   string   // the namespace and the user of the crawlers
	noAdmin    bool     // the crawlers can't connect to the admin listener
	own        []string // the machine's addresses, as the crawlers see them
	sources    string   // the crawlers' addresses, in place of those in config.yaml
}

// start makes the network, starts the gate, and loads the rules. A crawl is a command of the crawlers.
func (s scenario) start(t *testing.T) (n *network, gate *gatetest.Gate, crawl func(args ...string) *exec.Cmd) {
	t.Helper()
	n = newNetwork(t)
	dir := t.TempDir()
	readable(t, dir)
	var origins [2]*httptest.Server
	for i, address := range []string{"198.51.100.10", "2001:db8:1::10"} {
		origins[i] = n.serve(t, address)
	}
	ca := filepath.Join(dir, "origin-ca.pem")
	gatetest.Write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origins[0].Certificate().Raw})))
	crawl = func(args ...string) *exec.Cmd {
		return n.command(s.from, append([]string{"setpriv", "--reuid=" + s.as, "--clear-groups"}, args...)...)
	}

	// Without the rules the crawlers reach the origin themselves.
	if out, err := crawl("curl", "-sS", "-m", "20", "--resolve", "shop.example.com:80:198.51.100.10", "http://shop.example.com/private/x").CombinedOutput(); string(out) != "hello /private/x" {
		t.Fatalf("without rules: %s, %v", out, err)
	}

	data := filepath.Join(dir, "gate")
	gatetest.Write(t, filepath.Join(data, "config.yaml"), "")
	if err := errors.Join(os.Chown(data, 10001, 10001), os.Chmod(data, 0o755)); err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(
		"/var/lib/robotsgate", filepath.Join(data, "data"), "/var/log/robotsgate/audit.jsonl", filepath.Join(data, "audit.jsonl"),
		`[10.77.0.0/24, "fd77::/64"]`, cmp.Or(s.sources, `[10.77.0.0/24, "fd77::/64"]`),
	).Replace(gatetest.Read(t, "../../deploy/transparent/config.yaml"))
	config += "egress: {allow_private: [198.51.100.0/24, \"2001:db8:1::/48\"], ca_file: \"" + ca + "\"}\noverrides: [{hosts: [secret.*], action: deny, reason: not for us}]\n"
	prefix := []string{"ip", "netns", "exec", n.name("machine"), "setpriv", "--reuid=" + s.user, "--regid=" + s.user, "--clear-groups"}
	if s.capability != "" {
		prefix = append(prefix, "--inh-caps=+"+s.capability, "--ambient-caps=+"+s.capability)
	}
	program, err := exec.LookPath("robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	readable(t, filepath.Dir(program))
	gate = gatetest.Serve(t, dir, config, prefix...)
	gate.CA = filepath.Join(dir, "ca.pem")
	gatetest.Write(t, gate.CA, gatetest.Read(t, filepath.Join(data, "data", "ca.pem")))

	for _, line := range s.routes {
		n.must(t, "machine", strings.Fields(line)...)
	}
	load := n.command("machine", "nft", "-f", "-")
	load.Stdin = strings.NewReader(s.rules)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
	return n, gate, crawl
}

func (s scenario) run(t *testing.T) {
	n, gate, crawl := s.start(t)
	for _, c := range []struct {
		name, url string
		args      []string
		status    string // of the answer; empty: there is none
		body      string // is in it
		exit      int    // of curl
	}{
		{"https allowed", "https://shop.example.com/a", nil, "200", "hello /a", 0},
		{"https denied", "https://shop.example.com/private/a", nil, "403", "Disallow: /private/", 0},
		{"http allowed", "http://shop.example.com/a", nil, "200", "hello /a", 0},
		{"http denied", "http://shop.example.com/private/a", nil, "403", "Disallow: /private/", 0},
		{"HTTP/2", "https://shop.example.com/a", []string{"--http2", "-w", "\nHTTP/%{http_version}"}, "", "\nHTTP/2", 0},
		{"HTTP/1.1", "https://shop.example.com/a", []string{"--http1.1", "-w", "\nHTTP/%{http_version}"}, "", "\nHTTP/1.1", 0},
		{"an upload", "https://shop.example.com/up", []string{"--data-binary", "@" + gate.CA}, "200", "hello /up", 0},
		{"denied by an override", "https://secret.example.com/", nil, "403", "not for us", 0},
		{"a forbidden destination", "https://loop.example.com/", nil, "403", "special-purpose", 0},
		{"an unknown name", "http://unknown.example.com/", nil, "502", "does not resolve", 0},
		{"Host of another", "https://shop.example.com/a", []string{"-H", "Host: other.example.com"}, "421", "do not name the same host", 0},
		{"another port in Host", "http://shop.example.com/a", []string{"-H", "Host: shop.example.com:8080"}, "421", "port 80", 0},
		{"no Host", "http://shop.example.com/a", []string{"-0", "-H", "Host:"}, "400", "no Host", 0},
		{"a request for a proxy", "http://shop.example.com/a", []string{"--request-target", "http://shop.example.com/a"}, "400", "for a proxy", 0},
		{"no server name", "https://ADDRESS/", []string{"-k"}, "", "", 35},
		{"another port", "http://shop.example.com:8080/a", nil, "", "", 7},
	} {
		for _, v := range []struct{ version, nowhere string }{{"4", "203.0.113.5"}, {"6", "[2001:db8:dead::5]"}} {
			t.Run(c.name+" IPv"+v.version, func(t *testing.T) {
				var out, errs bytes.Buffer
				args := []string{"curl", "-sS", "-" + v.version, "-m", "30", "--cacert", gate.CA, "-A", "ExampleBot/1.0", "-H", "Accept: application/json"}
				for _, port := range []string{"80", "443", "8080"} {
					for _, host := range []string{"shop", "secret", "loop", "unknown"} {
						args = append(args, "--resolve", host+".example.com:"+port+":"+v.nowhere)
					}
				}
				if c.status != "" {
					args = append(args, "-w", "\n%{http_code}")
				}
				args = append(append(args, c.args...), strings.Replace(c.url, "ADDRESS", v.nowhere, 1))
				cmd := crawl(args...)
				cmd.Stdout, cmd.Stderr = &out, &errs
				err := cmd.Run()
				if got := cmd.ProcessState.ExitCode(); got != c.exit || !strings.Contains(out.String(), c.body) || !strings.HasSuffix(out.String(), c.status) {
					t.Errorf("%v, wanted %d and %q, %q; got %s%s", err, c.exit, c.body, c.status, &out, &errs)
				}
			})
		}
	}
	for i, address := range s.own {
		t.Run(fmt.Sprint("not redirected ", i), func(t *testing.T) {
			cmd := crawl("curl", "-sS", "-m", "30", "http://"+address+":9311/")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "mpty reply") && !strings.Contains(string(out), "reset") {
				t.Errorf("%v, got %s", err, out)
			}
		})
	}
	if s.noAdmin {
		t.Run("the admin listener", func(t *testing.T) {
			cmd := crawl("curl", "-sS", "-m", "30", gate.Admin+"/")
			if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 {
				t.Errorf("got %s", out)
			}
		})
	}
	t.Run("another protocol", func(t *testing.T) {
		out, err := crawl("timeout", "30", "bash", "-c", `exec 3<>/dev/tcp/203.0.113.5/80; printf 'SSH-2.0-OpenSSH_9.9\r\n' >&3; cat <&3`).CombinedOutput()
		if len(out) > 0 && !strings.Contains(string(out), "reset") {
			t.Errorf("%v, answered %s", err, out)
		}
	})
	t.Run("counts", func(t *testing.T) {
		out, err := n.command("machine", "setpriv", "--reuid="+s.user, "--clear-groups", "curl", "-sS", gate.Admin+"/metrics").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`{reason="no-name"} 2`, `{reason="not-redirected"} 2`, `{reason="not-http"} 1`, `{reason="bad-hello"} 0`} {
			if !strings.Contains(string(out), "robotsgate_redirected_refused_total"+want+"\n") {
				t.Errorf("no %s in\n%s", want, gatetest.Matches(`(?m)^robotsgate_redirected.*`, string(out)))
			}
		}
		if gate.Log.WaitFor(t, "redirected connections are refused.*reason=no-name"); s.capability == "" && !gate.Log.Has("tproxy the process needs CAP_NET_ADMIN", 1) {
			t.Error("the log does not say that tproxy does not work")
		}
	})
}

// readable lets all users read a folder in the folder for temporary files.
func readable(t *testing.T, dir string) {
	t.Helper()
	for ; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// replaced returns a file of deploy/transparent with a change.
func replaced(t *testing.T, file, old, with string) string {
	t.Helper()
	text := gatetest.Read(t, "../../deploy/transparent/"+file)
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", file, old)
	}
	return strings.Replace(text, old, with, 1)
}

// commentedLines returns the commands in a file's comment.
func commentedLines(t *testing.T, file, begin string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(gatetest.Read(t, "../../deploy/transparent/"+file)) {
		if command, ok := strings.CutPrefix(line, "#   "); ok && strings.HasPrefix(command, begin) {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s has no commands", file)
	}
	return lines
}

// A network is three namespaces in a row: inside, machine and web.
type network struct{ id string }

func (n *network) name(space string) string { return "robotsgate-" + n.id + "-" + space }

func (n *network) command(space string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.name(space)}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no proxy variables
	return cmd
}

func (n *network) must(t *testing.T, space string, args ...string) {
	t.Helper()
	if out, err := n.command(space, args...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{id: fmt.Sprint(os.Getpid())}
	for _, space := range []string{"inside", "machine", "web"} {
		if out, err := exec.Command("ip", "netns", "add", n.name(space)).CombinedOutput(); err != nil {
			t.Fatalf("ip netns add: %v\n%s", err, out)
		}
		t.Cleanup(func() { exec.Command("ip", "netns", "del", n.name(space)).Run() })
		n.must(t, space, "ip", "link", "set", "lo", "up")
	}
	// The names that the gate looks up. ip netns exec puts this file in the place of /etc/hosts.
	etc := filepath.Join("/etc/netns", n.name("machine"))
	gatetest.Write(t, filepath.Join(etc, "hosts"), "127.0.0.1 localhost loop.example.com\n198.51.100.10 shop.example.com\n2001:db8:1::10 shop.example.com\n")
	gatetest.Write(t, filepath.Join(etc, "resolv.conf"), "nameserver 127.0.0.1\n")
	t.Cleanup(func() { os.RemoveAll(etc) })
	for _, l := range []struct{ left, leftDev, leftAddrs, right, rightDev, rightAddrs string }{
		{"inside", "out0", "10.77.0.2/24 fd77::2/64", "machine", "crawlers0", "10.77.0.1/24 fd77::1/64"},
		{"machine", "out0", "198.51.100.2/24 2001:db8:1::2/64", "web", "in0", "198.51.100.10/24 2001:db8:1::10/64"},
	} {
		n.must(t, l.left, "ip", "link", "add", l.leftDev, "type", "veth", "peer", "name", l.rightDev, "netns", n.name(l.right))
		for _, end := range [][3]string{{l.left, l.leftDev, l.leftAddrs}, {l.right, l.rightDev, l.rightAddrs}} {
			for address := range strings.FieldsSeq(end[2]) {
				args := []string{"ip", "addr", "add", address, "dev", end[1]}
				if strings.Contains(address, "::") {
					args = append(args, "nodad")
				}
				n.must(t, end[0], args...)
			}
			n.must(t, end[0], "ip", "link", "set", end[1], "up")
		}
	}
	for _, route := range [][2]string{{"inside", "10.77.0.1"}, {"inside", "fd77::1"}, {"machine", "198.51.100.10"}, {"machine", "2001:db8:1::10"}} {
		n.must(t, route[0], "ip", "route", "add", "default", "via", route[1])
	}
	n.must(t, "web", "ip", "route", "add", "10.77.0.0/24", "via", "198.51.100.2")
	n.must(t, "web", "ip", "route", "add", "fd77::/64", "via", "2001:db8:1::2")
	for _, key := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
		n.must(t, "machine", "sh", "-c", "echo 1 > /proc/sys/"+strings.ReplaceAll(key, ".", "/"))
	}
	return n
}

// serve starts an origin in the namespace web, on the ports of http and https. It returns the one for https.
func (n *network) serve(t *testing.T, address string) *httptest.Server {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private/\n")
			return
		}
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "hello %s", r.URL.Path)
	})
	clear, secure := httptest.NewUnstartedServer(handler), httptest.NewUnstartedServer(handler)
	clear.Listener.Close()
	secure.Listener.Close()
	clear.Listener, secure.Listener = n.listen(t, net.JoinHostPort(address, "80")), n.listen(t, net.JoinHostPort(address, "443"))
	clear.Start()
	secure.StartTLS()
	t.Cleanup(clear.Close)
	t.Cleanup(secure.Close)
	return secure
}

// listen listens in the namespace web.
func (n *network) listen(t *testing.T, address string) net.Listener {
	t.Helper()
	type result struct {
		net.Listener
		error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // without an unlock: the thread ends with the goroutine, and so does its namespace
		space, err := os.Open("/run/netns/" + n.name("web"))
		if err == nil {
			defer space.Close()
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		l, err := net.Listen("tcp", address)
		done <- result{l, err}
	}()
	r := <-done
	if r.error != nil {
		t.Fatal(r.error)
	}
	return r.Listener
}
