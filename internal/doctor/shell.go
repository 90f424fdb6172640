package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/clientenv"
	"robotsgate/internal/escape"
)

// findGate looks for a gate at the proxy that the shell's variables name, then at the
// address in the configuration.
func (e *diagnosis) findGate(ctx context.Context) finding {
	places := []string{os.Getenv("https_proxy"), os.Getenv("HTTPS_PROXY"), os.Getenv("http_proxy"), os.Getenv("HTTP_PROXY"), socksProxy(), e.configured()}
	var failed []string
	for _, place := range places {
		if _, known := e.asked[place]; known || place == "" {
			continue
		}
		answer, err := certificateOf(ctx, place, "/ca.pem?trying") // its log then warns of no client that is tried
		answer.err = err
		if e.asked[place] = answer; err != nil {
			failed = append(failed, fmt.Sprintf("none at %s: %v", withoutLogin(place), err))
		}
		if e.gate.url == "" {
			e.gate = answer
		}
	}
	if e.gate.url == "" {
		start, file := named(e.config, "robotsgate serve"), e.config.File()
		if file == "" {
			start, file = start+", with -c FILE if it has one", "FILE and use -c FILE"
		}
		return fault("gate", strings.Join(failed, "; "), "start it: "+start,
			"if it runs at another address, such as that of --listen: paste the variables that serve printed, or write the address as listen: into "+file)
	}
	e.files = ca.ClientFiles{Cert: filepath.Join(e.dir, "ca.pem"), Bundle: filepath.Join(e.dir, "bundle.pem"), Wgetrc: filepath.Join(e.dir, "wgetrc")}
	if data, err := os.ReadFile(e.files.Bundle); err != nil || !e.holds(data) {
		e.files = ca.ClientFiles{Cert: "$PWD/ca.pem", Bundle: "$PWD/bundle.pem", Wgetrc: "$PWD/wgetrc"}
		for _, name := range []string{"ca.pem", "bundle.pem"} {
			e.get = append(e.get, "curl --noproxy '*' -o "+name+" "+e.gate.url+"/"+name)
		}
		e.get = append(e.get, `echo "ca_certificate = $PWD/bundle.pem" > wgetrc`)
	}
	return finding{subject: "gate", verdict: passed, text: e.gate.url}
}

// configured returns the gate's URL by the configuration.
func (e *diagnosis) configured() string { return "http://" + clientenv.Dialable(e.config.Listen) }

// isConfigured reports whether a proxy's URL, also one by SOCKS5, is the gate's by the configuration.
func (e *diagnosis) isConfigured(proxy string) bool {
	_, address, _ := strings.Cut(e.configured(), "://")
	return proxy == e.configured() || isSocks(proxy) && strings.HasSuffix(proxy, "://"+address)
}

// A gateAnswer is what a gate says about itself.
type gateAnswer struct {
	url    string            // without a login
	login  bool              // there was one
	pem    []byte            // the certificates that clients must trust
	signer *x509.Certificate // the one of these that it signs with: after a renewal not the first, until it reloads
	err    error             // there is no gate
}

// errNotRunning is the error of a proxy's URL at which nothing listens.
var errNotRunning = errors.New("nothing listens there, so no gate runs")

// certificateOf asks the gate at a proxy's URL for its certificates. An error means that it is no gate.
func certificateOf(ctx context.Context, proxy, page string) (a gateAnswer, err error) {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy // as curl and wget read it
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return a, errors.New("it is no URL") // and may hold a password
	}
	if isSocks(proxy) {
		u.Scheme = "http" // it answers both
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "80")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	// The question is which CA the gate has, so its certificate can't be verified yet. A gate
	// answers TLS for every proxy URL.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, body, err := get(ctx, transport, "https://"+u.Host+page, "")
	if errors.Is(err, syscall.ECONNREFUSED) {
		return a, errNotRunning
	}
	if err != nil {
		return a, errors.New("no connection")
	}
	all := certificatesIn(body)
	if resp.StatusCode != http.StatusOK || len(all) == 0 {
		return a, errors.New("what answers is no gate")
	}
	a = gateAnswer{u.Scheme + "://" + u.Host, u.User != nil, body, all[0], nil}
	for _, c := range all {
		if resp.TLS.PeerCertificates[0].CheckSignatureFrom(c) == nil {
			a.signer = c
		}
	}
	return a, nil
}

// Answers reports whether a gate answers at this URL, and whether it has another CA than a. It takes
// at most a second, since the start of a shell may wait for it.
func Answers(ctx context.Context, proxy string, a *ca.Authority) (runs, other bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	gate, err := certificateOf(ctx, proxy, "/ca.pem")
	if err != nil {
		return false, false
	}
	return true, !slices.ContainsFunc(certificatesIn(gate.pem), a.Certificate().Equal)
}

// get sends one request, follows no redirect, and reads the response, up to a size that no file of the gate has.
// An empty agent is that of package http.
func get(ctx context.Context, transport http.RoundTripper, address, agent string) (resp *http.Response, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Close = true
	if agent != "" {
		req.Header.Set("User-Agent", agent)
	}
	if resp, err = transport.RoundTrip(req); err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	resp.Request = req
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp, body, err
}

// proxyVariables checks that the shell's variables name the gate.
func (e *diagnosis) proxyVariables() finding {
	var missing, wrong []string
	waits := false // they lead to where the gate of the configuration will listen
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		value := os.Getenv(name)
		if value == "" && socksProxy() != "" {
			name, value = "all_proxy", socksProxy()
		}
		if value == "" {
			missing = append(missing, name)
		} else if e.isConfigured(value) && errors.Is(e.asked[value].err, errNotRunning) {
			waits = true
		} else if text := name + "=" + e.shownProxy(value); !e.holds(e.asked[value].pem) && !slices.Contains(wrong, text) {
			wrong = append(wrong, text)
		}
	}
	direct := e.noProxy()
	switch {
	case slices.Contains(direct, "*"):
		return fault("variables", "no_proxy has a *, which leads every client around the gate", e.env()...)
	case len(wrong) > 0:
		return fault("variables", "not to the gate: "+strings.Join(wrong, ", "), e.env()...)
	case len(missing) == 4:
		return fault("variables", "none is set: this shell is not set up for a gate", e.env()...)
	case len(missing) > 0:
		return fault("variables", "not set: "+strings.Join(missing, ", ")+"; some clients read one case only", e.env()...)
	case waits:
		return finding{"variables", passed, "lead to " + e.configured() + ", where no gate runs now", nil}
	case len(direct) > 0:
		return finding{"variables", passed, "lead to the gate; no_proxy leads around it for " + strings.Join(direct, ", "), nil}
	}
	return finding{"variables", passed, "lead to the gate", nil}
}

// socksProxy returns the proxy by SOCKS5 that clients take for every scheme without a proxy of its own; empty: there is
// none. A client that does not speak SOCKS ignores it, or fails.
func socksProxy() string {
	for _, name := range []string{"all_proxy", "ALL_PROXY"} {
		if value := os.Getenv(name); isSocks(value) {
			return value
		}
	}
	return ""
}

func isSocks(proxy string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(proxy), "://")
	return scheme == "socks5" || scheme == "socks5h"
}

// withoutLogin returns a proxy's URL without its login, also if it is no URL.
func withoutLogin(proxy string) string {
	scheme, _, ok := strings.Cut(proxy, "://")
	if scheme += "://"; !ok {
		scheme = ""
	}
	return scheme + escape.Short(proxy[max(len(scheme), strings.LastIndexByte(proxy, '@')+1):])
}

// shownProxy returns a proxy's URL without its login, and says if nothing listens there.
func (e *diagnosis) shownProxy(value string) string {
	shown := "a proxy with a login"
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		shown = escape.Short(u.Scheme + "://" + u.Host)
	}
	if errors.Is(e.asked[value].err, errNotRunning) {
		shown += " (nothing listens there)"
	}
	return shown
}

// env returns how to set all variables: with robotsgate env, or, on a machine without the
// gate's CA, with the downloaded files.
func (e *diagnosis) env() []string {
	if e.get == nil {
		line := `eval "$(` + named(e.config, "robotsgate env") + `)"`
		if e.config.File() == "" {
			line += ", with -c FILE if the gate has one"
		}
		return []string{line}
	}
	lines, last := slices.Clone(e.get), ""
	for _, v := range clientenv.For(e.proxy(), e.files) {
		if v.Value != last { // one line sets all variables with this value
			lines, last = append(lines, "export"), v.Value
		}
		lines[len(lines)-1] += " " + v.Name + "=" + quoteFile(v.Value)
	}
	return lines
}

// proxy returns the gate's URL for lines to copy.
func (e *diagnosis) proxy() string {
	if e.gate.login {
		return clientenv.WithPlaceholder(e.gate.url)
	}
	return e.gate.url
}

// quoteFile quotes a path for a shell, which expands $PWD in it.
func quoteFile(path string) string {
	if strings.HasPrefix(path, "$PWD/") {
		return `"` + path + `"`
	}
	return clientenv.QuoteShell(path)
}

// noProxy returns the hosts of no_proxy, except those that env sets.
func (e *diagnosis) noProxy() []string {
	var out []string
	for entry := range strings.FieldsFuncSeq(os.Getenv("no_proxy")+","+os.Getenv("NO_PROXY"), func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, entry) && !slices.Contains(out, entry) {
			out = append(out, escape.Printable(entry))
		}
	}
	return out
}
