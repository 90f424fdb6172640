//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"robotsgate/internal/gatetest"
)

// A confinedUser starts robotsgate run --confine in a folder of its own, behind whose gate every name
// leads to one origin.
type confinedUser struct {
	name    string
	id      int
	program string // robotsgate, where this user can execute it
	dir     string
	config  string
	log     string // file with the requests that the origin has received
}

// asConfinedUsers runs a test for each user that may start the command: one without privileges, and root if root
// runs the long tests.
func asConfinedUsers(t *testing.T, test func(t *testing.T, u *confinedUser)) {
	users := []confinedUser{{name: "root"}, {name: "unprivileged", id: 65534}}
	if os.Getuid() != 0 {
		users = []confinedUser{{name: "unprivileged", id: os.Getuid()}}
	} else if !gatetest.LongTests() {
		users = users[1:]
	}
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			u.prepare(t)
			test(t, &u)
		})
	}
}

func (u *confinedUser) prepare(t *testing.T) {
	t.Helper()
	// The folder of t.TempDir is closed to other users.
	var err error
	if u.dir, err = os.MkdirTemp("", "confined"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(u.dir) })
	origin := gatetest.ServeFiles(t, "testdata/clients/site", u.dir)
	u.config, u.log = filepath.Join(u.dir, "gate.yaml"), filepath.Join(u.dir, "origin.log")
	gatetest.Write(t, u.config, fmt.Sprintf("data_dir: %s/data\negress: {proxy: \"http://%s\", ca_file: %[1]s/origin-ca.pem}\nlog: {audit: %[1]s/audit.jsonl}\n", u.dir, origin.HTTP))
	program, err := exec.LookPath("robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	u.program = filepath.Join(u.dir, "robotsgate")
	for _, name := range []string{"robotsgate", "fetch", "without"} {
		// The programs are large: a link takes no room.
		if err := os.Link(filepath.Join(filepath.Dir(program), name), filepath.Join(u.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{u.dir, u.config, filepath.Join(u.dir, "origin-ca.pem")} {
		if err := os.Chown(path, u.id, u.id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(u.dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// command returns robotsgate run --confine with options, and a command of the shell.
func (u *confinedUser) command(t *testing.T, shell string, options ...string) *exec.Cmd {
	args := append([]string{"run", "--confine", "-c", u.config}, options...)
	cmd := exec.CommandContext(t.Context(), u.program, append(args, "--", "sh", "-c", shell)...)
	cmd.Dir = u.dir
	cmd.Env = []string{"PATH=" + u.dir + ":" + os.Getenv("PATH"), "HOME=" + u.dir, "GORACE=" + os.Getenv("GORACE"), "PYTHONDONTWRITEBYTECODE=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.id), Gid: uint32(u.id), NoSetGroups: u.id == 0}
	}
	return cmd
}

// run runs a command of the shell and returns its output and exit status.
func (u *confinedUser) run(t *testing.T, shell string, options ...string) (out string, status int) {
	t.Helper()
	cmd := u.command(t, shell, options...)
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("%s: %v\n%s", shell, err, output)
	return string(output), cmd.ProcessState.ExitCode()
}

// noVariables begins a command without any variable.
const noVariables = `env -i PATH="$PATH" HOME="$HOME" PYTHONDONTWRITEBYTECODE=1 `

// confinedClients are clients that know of no proxy and no CA.
var confinedClients = []struct {
	name     string
	works    string // succeeds if the client is installed
	get      string // prints the response to URL
	optional bool
	quick    bool
	http     bool // it has certificate authorities of its own
}{
	{name: "go", works: "true", get: "fetch URL", quick: true},
	{name: "curl", works: "curl --version", get: "curl -sS -i URL", quick: true},
	{name: "curl that ignores the variables", works: "curl --version", get: "curl -sS -i --noproxy '*' URL"},
	{name: "curl to an address", works: "curl --version", get: "curl -sS -i --connect-to ::192.0.2.7: URL"},
	{name: "curl over IPv6", works: "curl --version", get: "curl -sS -i --connect-to '::[2001:db8::7]:' URL"},
	{name: "wget", works: "wget --version", get: "wget -S --content-on-error -O - URL"},
	{name: "requests", works: "/usr/bin/python3 -c 'import requests'", get: "/usr/bin/python3 CLIENTS/get.py URL"},
	{name: "httpx", works: "/usr/bin/python3 -c 'import httpx'", get: "/usr/bin/python3 CLIENTS/get_httpx.py URL"},
	{name: "Node fetch", works: "node -e fetch", get: "node -e 'require(\"CLIENTS/print.cjs\")(fetch, \"URL\")'", optional: true, http: true},
	{name: "HttpClient", works: "javac CLIENTS/HttpClientGet.java", get: "java -XX:TieredStopAtLevel=1 -cp CLIENTS HttpClientGet URL", http: true},
	{name: "HttpURLConnection", works: "javac CLIENTS/ConnectionGet.java", get: "java -XX:TieredStopAtLevel=1 -cp CLIENTS ConnectionGet URL", http: true},
}

// TestConfinedClients runs clients without a variable. All their requests are decided.
func TestConfinedClients(t *testing.T) {
	t.Parallel()
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		t.Parallel()
		// Another user may not read the folder of the tests. Its folders, such as the large node_modules, are not needed.
		mine := filepath.Join(u.dir, "clients")
		files, err := os.ReadDir("testdata/clients")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Type().IsRegular() {
				gatetest.Write(t, filepath.Join(mine, f.Name()), gatetest.Read(t, "testdata/clients/"+f.Name()))
			}
		}
		for _, c := range confinedClients {
			t.Run(c.name, func(t *testing.T) {
				if !c.quick {
					gatetest.Long(t)
				}
				replace := strings.NewReplacer("CLIENTS", mine).Replace
				if out, err := exec.Command("sh", "-c", replace(c.works)).CombinedOutput(); err != nil {
					if c.optional {
						t.Skipf("%s is not installed: npm has it", c.name)
					}
					t.Skipf("%s is not installed: %v\n%s", c.name, err, out)
				}
				urls := []string{"http://shop.invalid/page.html", "http://shop.invalid/private/plans.html", "https://shop.invalid/page.html", "https://shop.invalid/private/plans.html"}
				if c.http {
					urls = urls[:2]
				}
				var shell strings.Builder
				for _, url := range urls {
					shell.WriteString("echo; echo NEXT; " + noVariables + strings.ReplaceAll(replace(c.get), "URL", url) + "\n")
				}
				out, _ := u.run(t, shell.String())
				answers := strings.Split(out, "\nNEXT\n")[1:]
				if len(answers) != len(urls) {
					t.Fatalf("got %d answers, want %d", len(answers), len(urls))
				}
				for i, url := range urls {
					if strings.Contains(url, "/private/") {
						expect(t, answers[i], `\b403\b`, `(?i)Robots-Gate-Decision: deny;reason=rule`)
					} else {
						expect(t, answers[i], `\b200\b`, `(?i)Robots-Gate-Decision: allow;reason=no-match`, `What everybody may read`)
					}
				}
			})
		}
		if log := gatetest.Read(t, u.log); strings.Contains(log, "/private/") {
			t.Errorf("the origin received denied requests:\n%s", log)
		}
	})
}

// TestConfinedProcess checks what the command's process may do, in the shell.
func TestConfinedProcess(t *testing.T) {
	t.Parallel()
	loopback, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loopback.Close() })
	go http.Serve(loopback, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "outside") }))
	outside := loopback.Addr().String()
	_, port, _ := net.SplitHostPort(outside)
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		t.Parallel()
		for _, c := range []struct {
			name, shell string
			options     []string
			want        string // pattern of the output
			status      int
		}{
			{name: "exit status", shell: `exit 7`, status: 7},
			{name: "ended by a signal", shell: `kill -KILL $$`, status: 137},
			{name: "no capability", shell: `grep -c '^Cap.*0000000000000000$' /proc/self/status`, want: `^5\n`},
			{name: "no new privileges", shell: `grep NoNewPrivs /proc/self/status`, want: `1\n`},
			{name: "its own user", shell: `id -u; touch file; stat -c %u file`, want: fmt.Sprintf("^%d\n%[1]d\n", u.id)},
			{name: "system settings", shell: `echo x > /proc/sys/kernel/core_pattern`, want: `Read-only file system`, status: 2},
			{name: "the gate's records", shell: `echo x >> data/lock`, want: `Read-only file system`, status: 2},
			{name: "the gate's other files", shell: `echo x > data/audit-checkpoint || mv data/bundle.pem data/b`, want: `Read-only file system(.|\n)*Read-only file system`, status: 1},
			{name: "the gate's folder", shell: `mv data old`, want: `busy`, status: 1},
			{name: "the CA's key", shell: `cat data/ca-key.pem`, want: `^cat: data/ca-key.pem: No such device or address`, status: 1},
			{name: "the audit log's key", shell: `touch data/x; cat data/audit-key.pem`, want: `Read-only(.|\n)*cat: data/audit-key.pem: No such device or address`, status: 1},
			{name: "processes outside", shell: `ls -d /proc/[0-9]* | wc -l; echo /proc/` + strconv.Itoa(os.Getpid()) + `/stat*`, want: `^[2-5]\n/proc/\d+/stat\*\n`},
			{name: "the first process", shell: `cat /proc/1/environ; ls -l /proc/1/root/`, want: `Permission denied`, status: 2},
			{name: "signals to the first process", shell: `for n in $(seq 1 64); do kill -$n 1; done 2>/dev/null; kill -KILL 1; sleep 0.2; exit 4`, status: 4},
			{name: "raw sockets", shell: python(`s.socket(s.AF_INET, s.SOCK_RAW, 1)`), want: `PermissionError`, status: 1},
			{name: "packet sockets", shell: python(`s.socket(s.AF_PACKET, s.SOCK_DGRAM)`), want: `Address family not supported`, status: 1},
			{name: "vsock", shell: python(`s.socket(s.AF_VSOCK, s.SOCK_STREAM)`), want: `Address family not supported`, status: 1},
			{name: "other ports", shell: python(`s.create_connection(("192.0.2.1", 22), 5)`), want: `ConnectionRefusedError`, status: 1},
			{name: "other ports over IPv6", shell: python(`s.create_connection(("2001:db8::1", 22), 5)`), want: `ConnectionRefusedError`, status: 1},
			{name: "UDP", shell: python(`u = s.socket(s.AF_INET, s.SOCK_DGRAM); u.settimeout(5); u.connect(("192.0.2.1", 443)); u.send(b"x"); u.recv(1)`), want: `ConnectionRefusedError`, status: 1},
			{name: "the host's loopback", shell: noVariables + `fetch http://` + outside + `/`, want: `connection refused`, status: 1},
			{name: "the host's loopback, reached", shell: noVariables + `fetch http://` + outside + `/`, options: []string{"--reach", outside}, want: `outside`},
			{name: "a name that is reached", shell: noVariables + `fetch http://localhost:` + port + `/`, options: []string{"--reach", "localhost:" + port}, want: `outside`},
			{name: "a caught port that is reached", shell: noVariables + `fetch http://` + outside + `/`, options: []string{"--ports", port, "--reach", outside}, want: `outside`},
			{name: "ports in use", shell: python(`s.socket().bind(("127.0.0.1", 8080))`), options: []string{"--ports", "8080"}, want: `Address already in use`, status: 1},
			{name: "ports in use, shared", shell: python(`l = s.socket(); l.setsockopt(s.SOL_SOCKET, s.SO_REUSEPORT, 1); l.bind(("192.0.2.1", 8080))`),
				options: []string{"--ports", "8080"}, want: `Address already in use`, status: 1},
			{name: "names", shell: python(`print(s.gethostbyname("shop.invalid"), s.getaddrinfo("a.b.invalid", 443)[0][4][0])`), want: `^7\.[01]\.\d+\.\d+ 7\.[01]\.\d+\.\d+\n`},
			{name: "DNS over UDP", shell: python(fmt.Sprintf(dns, "8.8.8.8")), want: `^udp 7\.[01]\.\d+\.\d+ tcp 7\.[01]\.\d+\.\d+\n$`},
			{name: "DNS over IPv6", shell: python(fmt.Sprintf(dns, "2001:db8::53")), want: `^udp 7\.[01]\.\d+\.\d+ tcp 7\.[01]\.\d+\.\d+\n$`},
			{name: "name servers", shell: `cat /etc/resolv.conf`, want: `^nameserver 127\.0\.0\.1\n$`},
			{name: "the hosts file", shell: `cat /etc/hosts`, want: `^127\.0\.0\.1 localhost\n::1 localhost\n127\.0\.0\.1 \S+\n$`},
			{name: "localhost", shell: python(`print({a[4][0] for a in s.getaddrinfo("localhost", 1)} <= {"127.0.0.1", "::1"})`), want: `^True\n`},
			{name: "servers of its own", shell: python(servers), want: `^127\.0\.0\.1 ::1 localhost $`},
			{name: "sockets of its own", shell: python(`l = s.socket(s.AF_UNIX); l.bind("own"); l.listen(); s.socket(s.AF_UNIX).connect("own"); ` +
				`l = s.socket(s.AF_UNIX); l.bind("\0own"); l.listen(); s.socket(s.AF_UNIX).connect("\0own"); print("connected")`), want: `^connected\n`},
			{name: "typing into the terminal", shell: python(`import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b"x")`), want: `Operation not permitted`, status: 1},
			{name: "the status page", shell: `echo "<$ROBOTSGATE_ADMIN>"`, want: `^<>\n`},
			{name: "TLS without a name", shell: `curl -sSk --noproxy '*' https://192.0.2.1/`, want: `\(35\)|missing extension`, status: 35},
		} {
			t.Run(c.name, func(t *testing.T) {
				if program, _, _ := strings.Cut(c.shell, " "); program == "curl" || program == "/usr/bin/python3" {
					gatetest.Needs(t, program)
				}
				out, status := u.run(t, c.shell, c.options...)
				out, _, _ = strings.Cut(out, "robotsgate: ")
				if !regexp.MustCompile(c.want).MatchString(out) || status != c.status {
					t.Errorf("got status %d and %q, want %d and %s", status, out, c.status, c.want)
				}
			})
		}
	})
}

// python returns a command of the shell that runs a program with the module socket as s.
func python(program string) string {
	return `/usr/bin/python3 -c 'import socket as s
` + program + `'`
}

// dns is a program that asks a name server over UDP and TCP. A connected socket accepts answers only from
// the address that was asked.
const dns = `import struct
query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04shop\x07invalid\x00\x00\x01\x00\x01"
family, _, _, _, address = s.getaddrinfo("%s", 53)[0]
u = s.socket(family, s.SOCK_DGRAM); u.settimeout(5); u.connect(address)
u.send(b"short"); u.send(query)
print("udp", s.inet_ntoa(u.recv(512)[-4:]), end=" ")
c = s.create_connection(address[:2], 5); c.sendall(struct.pack(">H", len(query)) + query)
answer = c.recv(2); answer = c.recv(512)
print("tcp", s.inet_ntoa(answer[-4:]))`

// servers is a program that serves on its own addresses and connects to itself.
const servers = `for family, address, name in (s.AF_INET, "127.0.0.1", "127.0.0.1"), (s.AF_INET6, "::1", "::1"), (s.AF_INET, "127.0.0.1", "localhost"):
    l = s.socket(family); l.bind((address, 0)); l.listen()
    c = s.create_connection((name, l.getsockname()[1]), 5)
    print(name, end=" ")`

// TestConfinedUnixSockets checks that sockets of the host are out of reach, unless one is named.
func TestConfinedUnixSockets(t *testing.T) {
	gatetest.Needs(t, "/usr/bin/python3")
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		connect := func(path string) string {
			return python(fmt.Sprintf(`s.socket(s.AF_UNIX).connect("%s"); print("connected")`, strings.ReplaceAll(path, "\x00", `\0`)))
		}
		abstract := "\x00robotsgate-test-" + strconv.Itoa(os.Getpid())
		stream := filepath.Join(u.dir, "stream")
		other := filepath.Join(u.dir, "other")
		for _, name := range []string{abstract, stream, other} {
			l, err := net.Listen("unix", strings.Replace(name, "\x00", "@", 1))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		datagram := filepath.Join(u.dir, "datagram")
		d, err := net.ListenPacket("unixgram", datagram)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, path := range []string{stream, datagram} {
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			name, shell string
			options     []string
			want        string
		}{
			{"stream", connect(stream), nil, "ConnectionRefusedError"},
			{"abstract", connect(abstract), nil, "ConnectionRefusedError"},
			{"datagram", python(`s.socket(s.AF_UNIX, s.SOCK_DGRAM).connect("` + datagram + `")`), nil, "ConnectionRefusedError"},
			{"removed", "rm " + stream, nil, "busy"},
			{"uncovered in a namespace of its own", "unshare -Urm umount " + stream, nil, "umount: |unshare: "},
			{"named", connect(stream), []string{"--reach", "unix:" + stream}, "^connected\n"},
			{"not the one named", connect(other), []string{"--reach", "unix:" + stream}, "ConnectionRefusedError"},
		} {
			out, _ := u.run(t, c.shell, c.options...)
			if !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%s: got %q, want %s", c.name, out, c.want)
			}
		}
	})
}

// TestConfinedDescriptors checks which descriptors a command gets: each at its number.
func TestConfinedDescriptors(t *testing.T) {
	t.Parallel()
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		socket, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(filepath.Join(u.dir, "file"))
		if err != nil {
			t.Fatal(err)
		}
		folder, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		extra := []*os.File{r, socket, file, folder, w} // from number 3 on
		for _, f := range extra {
			defer f.Close()
		}
		for _, c := range []struct {
			options []string
			want    string
		}{
			{nil, "pipe closed file closed pipe "},
			{[]string{"--keep-fd", "4", "--keep-fd", "6"}, "pipe socket file folder pipe "},
		} {
			cmd := u.command(t, `for n in 3 4 5 6 7; do
				if [ ! -e /proc/self/fd/$n ] && [ ! -h /proc/self/fd/$n ]; then echo -n "closed "
				else case $(readlink /proc/self/fd/$n) in pipe:*) echo -n "pipe ";; socket:*) echo -n "socket ";; */file) echo -n "file ";; /) echo -n "folder ";; *) echo -n "other ";; esac; fi
			done`, c.options...)
			cmd.ExtraFiles = extra
			out, err := cmd.Output()
			if string(out) != c.want {
				t.Errorf("%v: got %q, %v; want %q", c.options, out, err, c.want)
			}
		}
	})
}

// TestConfinedEnd checks that all descendants end with the command, and with the gate when that is
// killed.
func TestConfinedEnd(t *testing.T) {
	gatetest.Needs(t, "setsid", "sleep")
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		// A process that has left its session, and ignores signals.
		daemon := `setsid sh -c 'trap "" TERM HUP INT; echo > ready; while :; do sleep 0.1; done' > /dev/null 2>&1 &
			while [ ! -e ready ]; do sleep 0.01; done; `
		ended := func() {
			t.Helper()
			gatetest.Becomes(t, time.Second, "all descendants have ended", func() bool { return len(processesIn(u.dir)) == 0 })
		}
		if _, status := u.run(t, daemon+"exit 3"); status != 3 {
			t.Errorf("got status %d, want 3", status)
		}
		ended()
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
			ready := filepath.Join(u.dir, "ready")
			os.Remove(ready)
			cmd := u.command(t, daemon+"exec sleep 60")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			gatetest.Becomes(t, 10*time.Second, "the daemon runs", func() bool { _, err := os.Stat(ready); return err == nil })
			if len(processesIn(u.dir)) < 3 {
				t.Error("the descendants are not seen")
			}
			_ = cmd.Process.Signal(sig)
			_ = cmd.Wait()
			ended()
			if status := cmd.ProcessState.ExitCode(); sig != syscall.SIGKILL && status != 128+int(sig) {
				t.Errorf("%v: got status %d", sig, status)
			}
		}
	})
}

// processesIn returns the processes with dir as their current folder.
func processesIn(dir string) (all []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == dir {
			all = append(all, link)
		}
	}
	return all
}

// TestConfinedTerminal checks that a command uses the terminal as without confinement: an interactive
// shell with the job control, Ctrl-C and Ctrl-Z.
func TestConfinedTerminal(t *testing.T) {
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		cmd := u.command(t, "")
		// The shell outside starts robotsgate, so that Ctrl-Z can stop it.
		cmd.Args = []string{"bash", "--norc", "-i"}
		bash, err := exec.LookPath("bash")
		if err != nil {
			t.Skip("bash is not installed")
		}
		cmd.Path = bash
		cmd.Env = append(cmd.Env, "PS1=$ ", "TERM=dumb", "RUN="+u.program+" run --confine -c "+u.config+" --")
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		out := new(gatetest.Output)
		go copyTo(out, terminal)
		defer func() {
			terminal.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		// A key that is pressed while bash takes the terminal may get lost, so what precedes a line for it ends with its prompt, and
		// a line after a stopped command begins with spaces.
		say := func(line, want string) {
			t.Helper()
			fmt.Fprint(terminal, line)
			out.WaitFor(t, want)
		}
		say("", `\$ $`)
		say("$RUN sh -c 'trap \"exit 5\" INT; tty; echo rea''dy; while :; do sleep 0.1; done'\n", `/dev/pts/\d+\r\nready`)
		say("\x03", `(?s)\^C.*\n\$ $`)
		say("echo status=$?\n", `status=5\r\n\$ $`)
		say("$RUN sh -c 'echo be''gun; read x; echo got $x'\n", `begun\r`)
		say("\x1a", `(?s)Stopped.*\n\$ $`)
		say("  fg\n", `(?s)Stopped.*fg\r\n.*read x`)
		say("word\n", `(?s)got word\r.*\n\$ $`)
		say("$RUN env PS1='inside ' bash --norc -i\n", `inside $`)
		say("sh -c 'echo slee''ping; exec sleep 50'\n", `sleeping\r`)
		say("\x1a", `(?s)sleeping.*Stopped.*\ninside $`)
		say("jobs; exit; exit\n", `(?s)sleeping.*Stopped.*Stopped.*0 requests.*\n\$ $`)
		// The script that follows has the terminal again.
		say("sh -c \"$RUN env PS1='inner ' bash --norc -i; echo over; read x; echo back=\\$x\"\n", `inner $`)
		say("exit\n", `over\r`)
		say("home\n", `(?s)back=home\r.*\n\$ $`)
		say("echo ask''ing; read x; echo again=$x\n", `asking\r`)
		say("yes\n", `again=yes\r`)
		if strings.Contains(out.String(), "no job control") {
			t.Errorf("the shell inside has no job control:\n%s", out)
		}
	})
}

func copyTo(out *gatetest.Output, from *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		_, _ = out.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// TestConfineFailsClosed takes from the program one thing after another that the confinement needs. The
// command must not be started.
func TestConfineFailsClosed(t *testing.T) {
	t.Parallel()
	gatetest.Needs(t, "unshare")
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		t.Parallel()
		for _, c := range []struct{ name, shell, want string }{
			{"no user namespaces", `unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; RUN'`, `user\.max_user_namespaces`},
			{"no network namespaces", `unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_net_namespaces; RUN'`, `user\.max_net_namespaces`},
			{"no mount namespaces", `unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_mnt_namespaces; RUN'`, `user\.max_mnt_namespaces`},
			{"no PID namespaces", `unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_pid_namespaces; RUN'`, `user\.max_pid_namespaces`},
			{"a filter: user namespaces", `without "user namespaces" RUN`, `cannot make namespaces.*\n.*--security-opt seccomp`},
			{"a filter: mounts", `without mounts RUN`, `cannot separate the mounts.*\n.*--security-opt seccomp`},
			{"a filter: unmounting", `without unmounting RUN`, `cannot unmount`},
			{"a filter: netlink", `without netlink RUN`, `cannot add a route for all addresses`},
			{"a filter: listening", `without listening RUN`, `cannot listen on 0\.0\.0\.0:80 inside`},
			{"a filter: current folder", `without "current folder" RUN`, `cannot return to the current directory`},
			{"a filter: no_new_privs", `without no_new_privs RUN`, `cannot set no_new_privs`},
			{"a filter: capabilities", `without securebits RUN`, `cannot lock the set of capabilities`},
			{"a filter: dropping", `without dropping RUN`, `cannot (make namespaces|drop all capabilities)`},
			{"a filter: seccomp", `without seccomp RUN`, `cannot set a seccomp filter`},
			{"a masked /proc", `unshare -Urm sh -c 'mount -t tmpfs none /proc/sys; unshare -Ur sh -c "RUN"'`, `systempaths=unconfined`},
		} {
			t.Run(c.name, func(t *testing.T) {
				if strings.Contains(c.shell, "mount -t") {
					gatetest.Needs(t, "mount")
				}
				started := filepath.Join(u.dir, "started")
				run := u.program + " run --confine -c " + u.config + " -- touch " + started
				cmd := u.command(t, "")
				cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", strings.ReplaceAll(c.shell, "RUN", run)}
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() != 125 || !regexp.MustCompile(c.want).Match(out) || !bytes.Contains(out, []byte("the command was not started: cannot ")) {
					t.Errorf("got %v, want status 125 and %s:\n%s", err, c.want, out)
				}
				if _, err := os.Stat(started); err == nil {
					t.Error("the command was started")
				}
			})
		}
	})
}
