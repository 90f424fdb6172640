package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// A webServer is a real HTTP server. Its configuration in testdata/servers is a template: each
// port in it is an origin for the test.
type webServer struct {
	name    string
	config  string // in testdata/servers
	install string // Debian package
	needs   string // a file that exists if the server is installed
	copies  string // a file of Debian's defaults to copy beside the configuration
	command func(config, dir string) *exec.Cmd
}

var webServers = []webServer{
	{name: "nginx", config: "nginx.conf", install: "nginx", needs: "/usr/sbin/nginx",
		command: func(config, dir string) *exec.Cmd {
			return exec.Command("/usr/sbin/nginx", "-p", dir, "-c", config, "-e", "stderr")
		}},
	{name: "tomcat", config: "tomcat.xml", install: "tomcat10", needs: "/usr/share/tomcat10/bin/bootstrap.jar", copies: "/usr/share/tomcat10/etc/web.xml",
		command: func(config, dir string) *exec.Cmd {
			return java("-cp", "/usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar",
				"-Dcatalina.home=/usr/share/tomcat10", "-Dcatalina.base="+dir, "-Djava.io.tmpdir="+dir,
				"org.apache.catalina.startup.Bootstrap", "-config", config, "start")
		}},
}

func java(args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, args...)...)
}

// startServers starts those of the servers that are installed. They serve the pages of
// site.txtar. It returns the origins by the names that the configurations give to the ports,
// such as "nginx/static", and the Debian packages of the servers that are not installed. The
// certificate of the origins with TLS is written to a file.
func startServers(t *testing.T, servers []webServer, certificate string) (origins map[string]origin, missing []string) {
	t.Helper()
	dir := publicDir(t)
	site := filepath.Join(dir, "site")
	writeSite(t, site)
	ports := newPorts()
	has := map[string]bool{} // the templates refer to all servers
	for _, server := range webServers {
		has[server.name] = false
	}
	for _, server := range servers {
		_, err := os.Stat(server.needs)
		if has[server.name] = err == nil; err != nil {
			missing = append(missing, server.install)
		}
	}
	key := filepath.Join(dir, "key.pem")
	writeCertificate(t, certificate, key)
	var commands []*exec.Cmd
	for _, server := range servers {
		if !has[server.name] {
			continue
		}
		base := filepath.Join(dir, server.name)
		for _, sub := range []string{"conf", "logs", "work", "webapps"} {
			mkdir(t, filepath.Join(base, sub))
		}
		config := filepath.Join(base, "conf", server.config)
		expand(t, filepath.Join("testdata/servers", server.config), config, ports, map[string]any{
			"Dir": base, "Site": site, "Has": has, "Certificate": certificate, "Key": key,
			"Root": os.Getuid() == 0,
		})
		if server.copies != "" {
			copyFile(t, server.copies, filepath.Dir(config))
		}
		commands = append(commands, server.command(config, base))
	}
	origins = ports.release()
	for _, cmd := range commands {
		runServer(t, cmd)
	}
	for name, o := range origins {
		waitForRobots(t, name, o)
	}
	return origins, missing
}

// publicDir returns a new directory that a server may read after it has given up root. Only root
// may read the one of t.TempDir.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "servers")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, file, dir string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeSite(t *testing.T, dir string) {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/servers/site.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		mkdir(t, filepath.Dir(name))
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// expand writes a server's configuration.
func expand(t *testing.T, from, to string, p *ports, data any) {
	t.Helper()
	text, err := template.New(filepath.Base(from)).Option("missingkey=error").Funcs(template.FuncMap{
		"port":    p.get,
		"tlsPort": p.getTLS,
		"address": netip.ParseAddrPort,
	}).ParseFiles(from)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := text.Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// runServer runs a server until the test ends.
func runServer(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, tail(output.Bytes()))
		}
	})
}

func tail(text []byte) []byte { return text[max(0, len(text)-4<<10):] }

// waitForRobots waits until an origin serves robots.txt.
func waitForRobots(t *testing.T, name string, o origin) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		c := &rawClient{address: o.address, tls: o.tls}
		status, body, err := c.get("/robots.txt", o.address)
		c.close()
		if err == nil && status == 200 && strings.Contains(body, "Disallow: /private/") {
			return
		}
		last = fmt.Errorf("status %d, %v", status, err)
	}
	t.Fatalf("%s at %s does not serve robots.txt: %v", name, o.address, last)
}
