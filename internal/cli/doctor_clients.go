package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/escape"
)

// A program is a client that doctor can check.
type program struct {
	name string
	bin  string
	has  []string                        // arguments with which it succeeds if it can be checked; nil: it always can
	get  func(temp, url string) []string // arguments that print the contents of a URL
	// trust and proxy return advice if it does not trust the CA, or does not use the gate.
	trust, proxy func(e *diagnosis, f trust) []string
}

const (
	pythonGet = `import sys, requests; sys.stdout.write(requests.get(sys.argv[1], timeout=8).text)`
	nodeGet   = `fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t), () => process.exit(1))`
	javaGet   = `import java.io.*;
import java.net.*;
public class Get {
    public static void main(String[] args) throws Exception {
        try (InputStream in = new URL(args[0]).openStream()) {
            in.transferTo(System.out);
        }
    }
}
`
)

var programs = []program{
	{name: "curl", bin: "curl",
		get:   func(_, url string) []string { return []string{"-sS", "--max-time", "8", url} },
		trust: exporting("CURL_CA_BUNDLE"), proxy: proxied},
	{name: "wget", bin: "wget",
		get:   func(_, url string) []string { return []string{"-q", "-O", "-", "-T", "8", "-t", "1", url} },
		trust: wgetTrust("SYSTEM_WGETRC", "~/.wgetrc"), proxy: proxied},
	{name: "wget2", bin: "wget2",
		get: func(_, url string) []string {
			return []string{"-q", "-O", "-", "-T", "8", "--tries=1", "--no-hsts", "--no-tls-resume", "--no-ocsp", "--no-ocsp-file", url}
		},
		trust: wgetTrust("SYSTEM_WGET2RC", "~/.config/wget/wget2rc"), proxy: proxied},
	{name: "requests", bin: "python3", has: []string{"-c", "import requests"},
		get:   func(_, url string) []string { return []string{"-c", pythonGet, url} },
		trust: exporting("REQUESTS_CA_BUNDLE"), proxy: proxied},
	{name: "scrapy", bin: "scrapy",
		get:   func(_, url string) []string { return []string{"fetch", "--nolog", url} },
		trust: exporting("SSL_CERT_FILE"), proxy: proxied},
	{name: "node", bin: "node", has: []string{"-e", "fetch"},
		get: func(_, url string) []string { return []string{"-e", nodeGet, url} },
		trust: func(e *diagnosis, f trust) []string {
			return []string{"export NODE_EXTRA_CA_CERTS=" + quoteFile(f.ca)}
		},
		proxy: nodeProxy},
	{name: "java", bin: "java", has: []string{"--describe-module", "jdk.compiler"},
		get: func(temp, url string) []string {
			return []string{"-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", filepath.Join(temp, "Get.java"), url}
		},
		trust: javaTrust, proxy: javaProxy},
	{name: "go", trust: exporting("SSL_CERT_FILE"), proxy: proxied}, // checked in this process
}

// choose returns the programs of these names, all programs without a name.
func choose(names []string) ([]program, error) {
	if len(names) == 0 {
		return programs, nil
	}
	var out []program
	for _, name := range names {
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == strings.ToLower(name) })
		if i < 0 {
			return nil, fmt.Errorf("no client named %q is known: robotsgate doctor --help lists them", name)
		}
		out = append(out, programs[i])
	}
	return out, nil
}

// examine lets a client request, over https, a page under a name that only a gate
// answers. If this fails, two further requests find the reason.
func (e *diagnosis) checkClient(ctx context.Context, p program, temp string) finding {
	f := finding{subject: p.name, verdict: failed}
	if p.bin != "" {
		if _, err := exec.LookPath(p.bin); err != nil {
			f.text = notFound
			return f
		}
		if p.has != nil && run(ctx, temp, os.Environ(), p.bin, p.has) == nil {
			if f.text = notFound; p.bin == "java" {
				f.verdict, f.text = unknown, "can't be tried without a JDK; it needs both of:"
				f.advice = e.adviceFor(p, true, true)
			}
			return f
		}
	}
	scheme := "https"
	if !e.config.HTTPS.Intercept {
		scheme = "http"
	}
	if answer := e.fetch(ctx, p, temp, scheme+"://robotsgate.invalid/crawler", true); e.isPEM(answer) {
		f.text = "goes through the gate and trusts its CA"
		if scheme == "http" {
			f.text = "goes through the gate"
		}
		return identified(f, p, answer)
	}
	through := make(chan bool, 1)
	go func() { through <- e.isPEM(e.fetch(ctx, p, temp, "http://robotsgate.invalid/ca.pem", true)) }()
	_, host, _ := strings.Cut(e.gate, "://")
	trusts := e.isPEM(e.fetch(ctx, p, temp, "https://"+host+"/ca.pem", false))
	goes := <-through
	switch {
	case ctx.Err() != nil:
		f.text = fmt.Sprintf("does not end within %v", clientTimeout)
		return f
	case trusts && goes:
		f.text = "trusts the CA, but goes around the gate for https"
		trusts, goes = true, false
	case trusts:
		f.text = "trusts the CA, but does not go through the gate"
	case goes:
		f.text = "goes through the gate, but does not trust its CA"
	default:
		f.text = "does not go through the gate, nor trust its CA"
	}
	f.advice = e.adviceFor(p, !trusts, !goes)
	return f
}

// identified adds the answer of the gate to a client that uses it: which crawler the
// client is, or why it is refused.
func identified(f finding, p program, answer []byte) finding {
	said, _, _ := strings.Cut(string(answer), "\n")
	said = escape.Printable(strings.TrimSpace(said))
	if why, refused := strings.CutPrefix(said, "refused: "); refused {
		f.verdict, f.text = failed, f.text+", but is refused"
		f.advice = []string{why}
		if p.name == "java" && strings.Contains(why, "login") {
			f.advice = append(f.advice, "Java sends none from a URL: identify it by address, with crawlers[].sources")
		}
		return f
	}
	f.verdict = passed
	if name, _ := strings.CutPrefix(said, "crawler: "); name != "default" {
		f.text += ", as " + name
	}
	return f
}

func (e *diagnosis) adviceFor(p program, trusting, proxying bool) (out []string) {
	files, get := e.files()
	if e.unset && p.name != "java" && !(p.name == "node" && proxying) {
		return nil // the advice on variables covers it
	}
	if trusting {
		out = append(get, p.trust(e, files)...)
	}
	if proxying {
		out = append(out, p.proxy(e, files)...)
	}
	return out
}

// fetch returns what a client prints for a URL, nil if it fails. Without proxies it
// ignores the shell's proxy variables.
func (e *diagnosis) fetch(ctx context.Context, p program, temp, url string, proxies bool) []byte {
	if p.bin == "" {
		return fetchAsGo(ctx, url, proxies)
	}
	if p.bin == "java" {
		if err := os.WriteFile(filepath.Join(temp, "Get.java"), []byte(javaGet), 0o600); err != nil {
			return nil
		}
	}
	env := os.Environ()
	if !proxies {
		env = slices.DeleteFunc(env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return strings.HasSuffix(strings.ToLower(name), "_proxy")
		})
	}
	return run(ctx, temp, env, p.bin, p.get(temp, url))
}

// run returns what a program prints, nil if it fails. The program runs in the folder temp,
// with this environment.
func run(ctx context.Context, temp string, env []string, bin string, args []string) []byte {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = temp
	cmd.Env = append(slices.Clone(env), "PYTHONDONTWRITEBYTECODE=1")
	out := &limitedBuffer{left: 1 << 20}
	cmd.Stdout = out
	cmd.WaitDelay = time.Second // its children may keep the output open
	ownGroup(cmd)
	if err := cmd.Run(); err != nil {
		return nil
	}
	return append([]byte{}, out.Bytes()...)
}

// A limitedBuffer keeps the beginning of a program's output.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	keep := p[:min(len(p), b.left)]
	b.left -= len(keep)
	b.Buffer.Write(keep)
	return len(p), nil
}

// fetchAsGo requests a URL as programs in Go do by default, with the proxy and the roots
// of the environment.
func fetchAsGo(ctx context.Context, address string, proxies bool) []byte {
	transport := &http.Transport{DisableKeepAlives: true}
	if proxies {
		transport.Proxy = func(r *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(r) }
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return body
}
