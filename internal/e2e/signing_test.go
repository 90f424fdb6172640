package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestSigningDirectories: nginx with the lines of docs/signatures.md publishes the directories of two
// agents, one from files and one that the gate serves.
func TestSigningDirectories(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/sbin/nginx"); err != nil {
		t.Skip("nginx is not installed: Debian's package nginx has it")
	}
	page := gatetest.Read(t, "../../docs/signatures.md")
	locations := regexp.MustCompile("(?ms)^```nginx\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	makes := regexp.MustCompile(`(?m)^robotsgate keys -c gate\.yaml --headers (\| sed .*)$`).FindStringSubmatch(page)
	if len(locations) != 2 || makes == nil {
		t.Fatalf("the page has %d blocks for nginx, want 2; the line that makes one of them: %q", len(locations), makes)
	}
	dir := publicDir(t)
	certificate, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "cert-key.pem")
	writeCertificate(t, certificate, key)
	p := newPorts()
	byGate, err := p.getTLS("by the gate")
	if err != nil {
		t.Fatal(err)
	}
	byFile, err := p.getTLS("by files")
	if err != nil {
		t.Fatal(err)
	}
	shell := func(command string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", command)
		cmd.Dir, cmd.Stderr = dir, t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(out)
	}
	shell("robotsgate keys new a.pem && robotsgate keys new b.pem")
	gate := gatetest.Serve(t, dir, fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: data
admin: {listen: ""}
egress: {allow_private: [127.0.0.0/8], ca_file: cert.pem}
crawlers:
- name: a
  user_agents: [a]
  sign: {key_file: a.pem, agent: "https://%s"}
- name: b
  sign: {key_file: b.pem, agent: "https://%s"}
`, byGate, byFile))
	arguments := "robotsgate keys -c gate.yaml --agent https://" + byFile
	byGateArguments := "robotsgate keys -c gate.yaml --agent https://" + byGate
	shell(arguments + " >directory")
	shell(arguments + " --headers " + makes[1])

	server := func(address, location string) string {
		location = strings.NewReplacer("http://gate.internal:9309", gate.Proxy, "/etc/nginx/", dir+"/").Replace(location)
		return fmt.Sprintf("server {\nlisten %s ssl;\nssl_certificate %s;\nssl_certificate_key %s;\n%s}\n", address, certificate, key, location)
	}
	config := filepath.Join(dir, "nginx.conf")
	gatetest.Write(t, config, fmt.Sprintf("daemon off;\nmaster_process off;\npid %[1]s/nginx.pid;\nevents { }\nhttp {\naccess_log off;\n"+
		"proxy_temp_path %[1]s/proxy;\nclient_body_temp_path %[1]s/body;\nfastcgi_temp_path %[1]s/fastcgi;\nuwsgi_temp_path %[1]s/uwsgi;\n"+
		"scgi_temp_path %[1]s/scgi;\n%[2]s%[3]s}\n",
		dir, server(byGate, locations[0][1]), server(byFile, locations[1][1])))
	p.release()
	cmd := exec.Command("/usr/sbin/nginx", "-p", dir, "-c", config, "-e", "stderr")
	runServer(t, cmd)
	waitForPort(t, byFile)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for address, command := range map[string]string{byGate: byGateArguments, byFile: arguments} {
		resp, err := client.Get("https://" + address + "/.well-known/http-message-signatures-directory")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := shell(command); err != nil || string(body) != want {
			t.Errorf("%s publishes %q, %v, want %q", address, body, err, want)
		}
		for line := range strings.Lines(shell(command + " --headers")) {
			// The signatures have been made at another time.
			name, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if got := resp.Header.Get(name); got == "" || !strings.HasPrefix(name, "Signature") && got != want {
				t.Errorf("%s: %s: got %q, want %q", address, name, got, want)
			}
		}
	}
}

// waitForPort waits until a server accepts connections.
func waitForPort(t *testing.T, address string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
	}
	t.Fatalf("nothing listens at %s", address)
}
