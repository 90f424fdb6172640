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

// TestJavaLogin sends a login of HttpURLConnection to a gate, for an https URL. Java sends it only with the option that
// docs/clients.md names.
func TestJavaLogin(t *testing.T) {
	gatetest.Needs(t, "java", "javac", "keytool")
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "site", "page.txt"), "public")
	origin := gatetest.ServeFiles(t, filepath.Join(dir, "site"), dir)
	gate := gatetest.Serve(t, dir, `listen: 127.0.0.1:0
data_dir: data
admin: {listen: ""}
crawlers:
- {name: news, login: {user: news, password_bcrypt: "$2y$10$MksAbRZvBofIIbFrC2YoNe61adqWH/7Psh1xvPW9SVVvHjBN.yH8q"}}
unknown_clients: refuse
egress: {allow_private: [127.0.0.0/8], ca_file: origin-ca.pem}
`)
	option := "-Djdk.http.auth.tunneling.disabledSchemes="
	if !strings.Contains(gatetest.Read(t, "../../docs/clients.md"), "`"+option+"`") {
		t.Errorf("docs/clients.md does not name %s", option)
	}
	const script = `keytool -importcert -noprompt -alias robotsgate -file data/ca.pem -keystore trust.p12 -storepass changeit 2>&1
host=${PROXY%%%%:*} port=${PROXY##*:}
exec java %s -Dhttp.nonProxyHosts= -Dhttps.proxyHost=$host -Dhttps.proxyPort=$port -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit "$PROGRAM" "$URL" 2>&1`
	program, err := filepath.Abs("testdata/clients/LoginGet.java")
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{option: "status 200\n", "": "407"} {
		cmd := exec.Command("sh", "-c", fmt.Sprintf(script, option))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PROXY="+strings.TrimPrefix(gate.Proxy, "http://"), "PROGRAM="+program, "URL=https://"+origin.HTTPS+"/page.txt")
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("with %q: no %q in\n%s", option, want, out)
		}
	}
}
