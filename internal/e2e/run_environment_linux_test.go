package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestRunEnvironment starts run in shells that have variables of a proxy: of another gate, after
// eval "$(robotsgate env)", and of a company's proxy. Clients use the gate of run, and that uses the other proxy.
func TestRunEnvironment(t *testing.T) {
	t.Parallel()
	asConfinedUsers(t, func(t *testing.T, u *confinedUser) {
		origin := regexp.MustCompile(`"(http://\S+)"`).FindStringSubmatch(gatetest.Read(t, u.config))[1]
		outer := filepath.Join(u.dir, "outer")
		config := "data_dir: data\nadmin: {listen: \"\"}\negress: {proxy: \"" + origin + "\", ca_file: " + u.dir + "/origin-ca.pem}\nlog: {level: error}\n"
		if err := os.Mkdir(outer, 0o755); err != nil {
			t.Fatal(err)
		}
		gate := gatetest.Serve(t, outer, "listen: 127.0.0.1:0\n"+config)
		gatetest.Write(t, filepath.Join(outer, "env.yaml"), "listen: "+strings.TrimPrefix(gate.Proxy, "http://")+"\n"+config)
		variables, err := exec.Command(u.program, "env", "-c", filepath.Join(outer, "env.yaml")).Output()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("chmod", "-R", "a+rX", outer).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		gatetest.Write(t, u.config, "data_dir: data\n")
		gatetest.Write(t, filepath.Join(u.dir, "get.py"), gatetest.Read(t, "testdata/clients/get.py"))
		var company strings.Builder
		for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
			company.WriteString("export " + name + "=" + origin + "\n")
		}
		company.WriteString("export SSL_CERT_FILE=origin-ca.pem CURL_CA_BUNDLE=origin-ca.pem REQUESTS_CA_BUNDLE=origin-ca.pem no_proxy=lan NO_PROXY=shop.invalid\n")
		for _, shell := range []struct{ name, variables string }{{"another gate", string(variables)}, {"a company's proxy", company.String()}} {
			for _, client := range []struct{ name, command, want string }{
				{"curl", "curl -sS -i URL/page.html URL/private/plans.html", `(?s)\b200\b.*\b403\b`},
				{"requests", "/usr/bin/python3 get.py URL/private/plans.html", `\b403\b`},
				{"Node fetch", `node -e 'fetch("URL/private/plans.html").then(r => console.log(r.status))'`, `\b403\b`},
			} {
				program, _, _ := strings.Cut(client.command, " ")
				if program != "curl" && !gatetest.LongTests() {
					continue
				}
				gatetest.Needs(t, program)
				for _, options := range []string{"", "--confine"} {
					if program == "node" && options == "" {
						continue // Node 22.20 and earlier use no proxy
					}
					command := strings.ReplaceAll(client.command, "URL", "https://shop.invalid")
					cmd := u.command(t, "")
					cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", shell.variables + "robotsgate run " + options + " -c gate.yaml -- " + command}
					if out, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile(client.want).Match(out) {
						t.Errorf("%s, %s, run %s: got %v, want %s:\n%s", shell.name, client.name, options, err, client.want, out)
					}
				}
			}
		}
		if log := gatetest.Read(t, u.log); strings.Contains(log, "/private/") || !strings.Contains(log, "/page.html") {
			t.Errorf("the origin's log: %s", log)
		}
	})
}
