package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"robotsgate/internal/escape"
)

// exporting advises to name the bundle in a variable.
func exporting(name string) func(*diagnosis, trust) []string {
	return func(_ *diagnosis, f trust) []string { return []string{"export " + name + "=" + quoteFile(f.bundle)} }
}

func wgetTrust(variable, file string) func(*diagnosis, trust) []string {
	return func(_ *diagnosis, f trust) []string {
		if f.wgetrc == "" {
			return []string{"ca_certificate = " + f.bundle + " in " + file}
		}
		return []string{"export " + variable + "=" + quoteFile(f.wgetrc), "or ca_certificate = " + f.bundle + " in " + file}
	}
}

func proxied(e *diagnosis, _ trust) []string {
	return []string{"export http_proxy=" + e.gate + " https_proxy=" + e.gate}
}

func nodeProxy(e *diagnosis, f trust) []string {
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	version := strings.TrimSpace(string(run(ctx, "", os.Environ(), "node", []string{"--version"})))
	var major, minor int
	fmt.Sscanf(version, "v%d.%d", &major, &minor)
	if major < 22 || major == 22 && minor < 21 || major == 23 || major == 24 && minor < 5 {
		return []string{
			fmt.Sprintf("Node %s does not read the variables by itself: get 22.21, 24.5 or later,", escape.Printable(version)),
			"or npm install undici, and call setGlobalDispatcher(new EnvHttpProxyAgent())",
		}
	}
	return append([]string{"export NODE_USE_ENV_PROXY=1"}, proxied(e, f)...)
}

func javaTrust(_ *diagnosis, f trust) []string {
	return []string{
		"keytool -importcert -noprompt -alias robotsgate -file " + quoteFile(f.ca) + " -keystore trust.p12 -storepass changeit",
		`export JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS -Djavax.net.ssl.trustStore=$PWD/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"`,
	}
}

func javaProxy(e *diagnosis, _ trust) []string {
	_, address, _ := strings.Cut(e.gate, "://")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, "80"
	}
	return []string{fmt.Sprintf(`export JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS -Dhttp.proxyHost=%s -Dhttp.proxyPort=%s -Dhttps.proxyHost=%[1]s -Dhttps.proxyPort=%[2]s"`, host, port)}
}

// quoteFile quotes a path for a shell, which expands $PWD in it.
func quoteFile(path string) string {
	if strings.HasPrefix(path, "$PWD/") {
		return `"` + path + `"`
	}
	return quoteShell(path)
}
