package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// A sandboxUser runs the lines of docs/sandboxes.md in the folder of a confinedUser, which is also the home directory.
// There ./agent is a command of the shell.
type sandboxUser struct {
	*confinedUser
	doc string // docs/sandboxes.md
}

func newSandboxUser(t *testing.T, u *confinedUser) *sandboxUser {
	t.Helper()
	gatetest.Write(t, u.config, strings.Replace(gatetest.Read(t, u.config), u.dir+"/data", u.dir+"/.local/share/robotsgate", 1))
	// The lines name no configuration.
	gatetest.Write(t, filepath.Join(u.dir, "bin", "robotsgate"), `#!/bin/sh
command=$1; shift
exec `+u.program+` "$command" -c `+u.config+` "$@"
`)
	own(t, u, filepath.Join(u.dir, "bin"), filepath.Join(u.dir, "bin", "robotsgate"))
	for _, dir := range []string{".local", ".local/share", ".local/share/robotsgate"} {
		if err := os.Mkdir(filepath.Join(u.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		own(t, u, filepath.Join(u.dir, dir))
	}
	return &sandboxUser{u, gatetest.Read(t, "../../docs/sandboxes.md")}
}

// own gives files to a user, who may execute them.
func own(t *testing.T, u *confinedUser, files ...string) {
	t.Helper()
	for _, file := range files {
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, u.id, u.id); err != nil {
			t.Fatal(err)
		}
	}
}

// block returns a block of the documentation, for the origin of the tests.
func (u *sandboxUser) block(t *testing.T, language, has string) string {
	t.Helper()
	return strings.ReplaceAll(docBlock(t, u.doc, language, has), "example.com", "shop.invalid")
}

// runs runs lines of the documentation with an agent, and returns their output and exit status.
func (u *sandboxUser) runs(t *testing.T, lines, agent string) (string, int) {
	t.Helper()
	file := filepath.Join(u.dir, "agent")
	gatetest.Write(t, file, "#!/bin/sh\n"+agent)
	own(t, u.confinedUser, file)
	cmd := u.command(t, "")
	cmd.Path, cmd.Args, cmd.Dir = "/bin/sh", []string{"sh", "-c", lines}, u.dir
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(u.dir, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("%s: %v\n%s", lines, err, out)
	return string(out), cmd.ProcessState.ExitCode()
}

// curlStatus is a command of the shell that prints the status of an answer after a word.
func curlStatus(word, arguments string) string {
	return fmt.Sprintf("echo %s $(curl -sS -o /dev/null -w '%%{http_code}' %s 2>&1)\n", word, arguments)
}

// sandboxedAgent requests a page and a path that is disallowed, with the proxy variables and without. Then it reads
// the CA's key and ends with a status.
var sandboxedAgent = curlStatus("page", "https://shop.invalid/page.html") + curlStatus("private", "https://shop.invalid/private/plans.html") +
	curlStatus("around", "--noproxy '*' http://shop.invalid/private/plans.html") + curlStatus("http", "http://shop.invalid/private/plans.html") + `
cat ~/.local/share/robotsgate/ca-key.pem
exit 7
`

// decided checks what sandboxedAgent has printed, and that no denied request has left.
func (u *sandboxUser) decided(t *testing.T, out string, status int, patterns ...string) {
	t.Helper()
	expect(t, out, append(patterns, `(?m)^page 200$`, `(?m)^private 403$`, `(?m)^http 403$`)...)
	if strings.Contains(out, "PRIVATE KEY") {
		t.Error("the command can read the CA's key")
	}
	if status != 7 {
		t.Errorf("exit status %d, want that of the command, 7", status)
	}
	log := gatetest.Read(t, u.log)
	if strings.Contains(log, "/private/") {
		t.Errorf("the origin received denied requests:\n%s", log)
	}
	if !strings.Contains(log, "/page.html") {
		t.Errorf("the origin received no request for the page:\n%s", log)
	}
}

// asSelf prepares a user with the id of the tests.
func asSelf(t *testing.T) *sandboxUser {
	t.Helper()
	u := &confinedUser{name: "self", id: os.Getuid()}
	u.prepare(t)
	return newSandboxUser(t, u)
}

// TestSandboxRuntime runs srt behind the gate, as docs/sandboxes.md says. A confined command cannot start it.
func TestSandboxRuntime(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	for _, program := range []struct{ name, debian string }{{"bwrap", "bubblewrap"}, {"socat", "socat"}, {"rg", "ripgrep"}} {
		gatetest.Needs(t, program.name)
	}
	mustHaveModule(t, "@anthropic-ai/sandbox-runtime")
	u := asSelf(t)
	srt := filepath.Join(u.dir, "bin", "srt")
	gatetest.Write(t, srt, "#!/bin/sh\nexec "+abs(t, node())+" "+abs(t, "testdata/clients/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js")+` "$@"`+"\n")
	own(t, u.confinedUser, srt)
	gatetest.Write(t, filepath.Join(u.dir, "srt.json"), u.block(t, "json", "allowedDomains"))
	line := u.block(t, "sh", " srt ")
	out, code := u.runs(t, line, curlStatus("other", "https://other.invalid/")+"touch /var/tmp/outside\n"+sandboxedAgent)
	u.decided(t, out, code, `(?m)^around curl: \(\d+\) .*000$`, `(?m)^other curl: .* 403`, `cannot touch`)
	if strings.Contains(gatetest.Read(t, u.log), "other.invalid") {
		t.Error("the origin received a request for a host that is not in the list")
	}
	gatetest.Write(t, filepath.Join(u.dir, "srt.json"), strings.Replace(u.block(t, "json", "allowedDomains"), `"deniedDomains"`, `"tlsTerminate": {}, "deniedDomains"`, 1))
	out, _ = u.runs(t, line, curlStatus("terminated", "https://shop.invalid/page.html?terminated"))
	if expect(t, out, `(?m)^terminated 502$`, `0 requests`); strings.Contains(gatetest.Read(t, u.log), "terminated") {
		t.Error("with tlsTerminate srt uses the gate: docs/sandboxes.md says that it does not")
	}
	if out, code = u.runs(t, strings.Replace(line, "run --", "run --confine --", 1), "echo begun"); code == 0 || strings.Contains(out, "begun") {
		t.Errorf("srt started inside --confine: status %d\n%s", code, out)
	}
}

// TestBubblewrap runs a confined command in bubblewrap, as docs/sandboxes.md says. bubblewrap in a confined command does
// not start.
func TestBubblewrap(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "bwrap")
	c := &confinedUser{name: "unprivileged", id: os.Getuid()}
	if c.id == 0 {
		c.id = 65534
	}
	c.prepare(t)
	u := newSandboxUser(t, c)
	out, code := u.runs(t, u.block(t, "sh", "bwrap "), "touch /var/tmp/outside; echo tmp: $(ls -A /tmp)\n"+sandboxedAgent)
	u.decided(t, out, code, `(?m)^around 403$`, `cannot touch '/var/tmp/outside': Read-only file system`, `(?m)^tmp: \S*$`)
	if out, code = u.runs(t, "robotsgate run --confine -- bwrap --ro-bind / / ./agent", "echo begun"); code == 0 || strings.Contains(out, "begun") {
		t.Errorf("bubblewrap started inside --confine: status %d\n%s", code, out)
	}
}

// TestFirejail runs a command in firejail, with one way out: the gate's socket, as docs/sandboxes.md says.
func TestFirejail(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	gatetest.Needs(t, "firejail")
	gatetest.Needs(t, "socat")
	u := asSelf(t)
	script := u.block(t, "shell", "firejail ")
	if os.Getuid() == 0 { // root's profile hides the folder of the tests
		script = strings.Replace(script, "--quiet", "--quiet --noprofile", 1)
	}
	gatetest.Write(t, filepath.Join(u.dir, "gated.sh"), script)
	line := u.block(t, "sh", "gated.sh")
	out, code := u.runs(t, line, sandboxedAgent)
	u.decided(t, out, code, `(?m)^around curl: \(\d+\) .*000$`)
	if out, code := u.runs(t, "unset http_proxy; timeout 10 sh gated.sh ./agent", "echo begun"); code == 0 || code == 124 || !strings.Contains(out, "run this behind robotsgate run") {
		t.Errorf("without a gate: exit status %d\n%s", code, out)
	}
	for _, around := range []string{"robotsgate run --confine -- firejail --noprofile ./agent", "firejail --noprofile robotsgate run --confine -- ./agent"} {
		out, _ := u.runs(t, around, "echo begun")
		inside := strings.HasPrefix(around, "robotsgate")
		if strings.Contains(out, "begun") != inside || inside && !strings.Contains(out, "without any additional sandboxing features") {
			t.Errorf("%s\n%s", around, out)
		}
	}
}

// TestCrawlee runs docs/sandboxes.md's program for Crawlee: it gets the page and the refusal, over https, only if Node
// trusts the CA.
func TestCrawlee(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	mustHaveModule(t, "@crawlee/cheerio")
	u := asSelf(t)
	if err := os.Symlink(abs(t, "testdata/clients/node_modules"), filepath.Join(u.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(abs(t, node()), filepath.Join(u.dir, "bin", "node")); err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(u.block(t, "js", "ProxyConfiguration"), "shop.invalid/\"", "shop.invalid/page.html\"", 1)
	gatetest.Write(t, filepath.Join(u.dir, "crawl.mjs"), program)
	line := u.block(t, "sh", "crawl.mjs")
	out, _ := u.runs(t, line, "")
	expect(t, out, `(?m)^200 https://shop\.invalid/page\.html `, `(?m)^403 https://shop\.invalid/private/ 403 Refused by robots rules$`, `2 requests, 1 denied`)
	gatetest.Write(t, filepath.Join(u.dir, "crawl.mjs"), strings.Replace(program, "ignoreSslErrors", "maxRequestRetries: 0, ignoreSslErrors", 1))
	out, _ = u.runs(t, strings.Replace(line, "-- ", "-- env -u NODE_EXTRA_CA_CERTS ", 1), "")
	expect(t, out, `: 0 requests, 0 denied`)
}

// TestLoaders runs the HTTP clients of LangChain's loaders, as docs/sandboxes.md says: requests, and aiohttp with and
// without trust_env.
func TestLoaders(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import aiohttp, requests").CombinedOutput(); err != nil {
		t.Skipf("aiohttp or requests is not installed: %s\nDebian's packages python3-aiohttp and python3-requests have them", out)
	}
	u := asSelf(t)
	gatetest.Write(t, filepath.Join(u.dir, "load.py"), `
import asyncio, aiohttp, requests
private = "https://shop.invalid/private/"
print("requests", requests.get(private).status_code)
async def get(trust):
    async with aiohttp.ClientSession(trust_env=trust) as session:
        try:
            async with session.get(private) as response: print("aiohttp", trust, response.status)
        except aiohttp.ClientConnectorError: print("aiohttp", trust, "goes around")
asyncio.run(get(True))
asyncio.run(get(False))
`)
	out, _ := u.runs(t, strings.Replace(u.block(t, "sh", "load.py"), "python3", "/usr/bin/python3", 1), "")
	expect(t, out, `(?m)^requests 403\naiohttp True 403\naiohttp False goes around$`)
}
