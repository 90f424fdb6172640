package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/escape"
)

// findGate looks for a gate at the proxy that the shell's variables name, then at the
// address in the configuration.
func (e *diagnosis) findGate(ctx context.Context) finding {
	f := finding{subject: "gate", verdict: passed}
	configured := e.configured()
	places := []string{configured}
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"} {
		if v := e.getenv(name); v != "" {
			places = slices.Insert(places, len(places)-1, v)
		}
	}
	var lastErr error
	for _, place := range places {
		pem, address, err := e.ask(ctx, place)
		if err != nil {
			lastErr = err
			continue
		}
		e.gate, e.pem, e.authority = address, pem, signer(ctx, address, certificatesIn(pem))
		f.text = e.gate
		return f
	}
	f.verdict, f.text = failed, fmt.Sprintf("none at %s: %v", configured, lastErr)
	f.advice = []string{"start it: robotsgate serve"}
	return f
}

// configured returns the gate's URL by the configuration.
func (e *diagnosis) configured() string { return "http://" + dialable(e.config.Listen) }

// An answer is the result of certificateOf for a proxy's URL.
type answer struct {
	pem     []byte
	address string
	err     error
}

// ask calls certificateOf once for each URL, since waiting for an answer takes time.
func (e *diagnosis) ask(ctx context.Context, proxy string) (pem []byte, address string, err error) {
	a, known := e.asked[proxy]
	if !known {
		a.pem, a.address, a.err = certificateOf(ctx, proxy)
		e.asked[proxy] = a
	}
	return a.pem, a.address, a.err
}

// certificateOf downloads the certificate that clients must trust from the gate at a
// proxy's URL. It returns the URL without a login, and an error if that is no gate.
func certificateOf(ctx context.Context, proxy string) (pem []byte, address string, err error) {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy // as curl and wget read it
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, "", fmt.Errorf("it is no URL") // and may hold a password
	}
	address = u.Scheme + "://" + u.Host
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/ca.pem", nil)
	if err != nil {
		return nil, "", fmt.Errorf("it is no URL")
	}
	// The question is which CA the gate has, so its certificate can't be verified yet.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		if op, ok := err.(net.Error); ok && op.Timeout() {
			return nil, "", fmt.Errorf("nothing answers")
		}
		return nil, "", fmt.Errorf("no connection")
	}
	defer resp.Body.Close()
	pem, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || resp.StatusCode != http.StatusOK || len(certificatesIn(pem)) == 0 {
		return nil, "", fmt.Errorf("what answers is no gate")
	}
	return pem, address, nil
}

// signer returns the CA that the gate signs with, of those that it serves. After a renewal
// it is not the first, until the gate reloads.
func signer(ctx context.Context, gate string, all []*x509.Certificate) *x509.Certificate {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, address, _ := strings.Cut(gate, "://")
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // no request follows
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return all[0]
	}
	defer conn.Close()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	for _, c := range all {
		if leaf.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return all[0]
}

// proxyVariables checks that the shell's variables name the gate.
func (e *diagnosis) proxyVariables(ctx context.Context) finding {
	f := finding{subject: "variables", verdict: passed, text: "lead to the gate"}
	var missing, wrong []string
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		value := e.getenv(name)
		if value == "" {
			missing = append(missing, name)
			continue
		}
		if pem, _, err := e.ask(ctx, value); err != nil || e.gate == "" || !e.holds(pem) {
			wrong = append(wrong, name)
		}
	}
	switch {
	case len(wrong) > 0:
		f.verdict, f.text = failed, "not to the gate: "+strings.Join(wrong, ", ")
	case len(missing) > 0:
		f.verdict, f.text = failed, "not set: "+strings.Join(missing, ", ")+"; some clients read one case only"
	}
	direct := e.noProxy()
	switch {
	case slices.Contains(direct, "*"):
		f.verdict, f.text = failed, "no_proxy has a *, which leads every client around the gate"
	case f.verdict == passed && len(direct) > 0:
		f.text += "; no_proxy leads around it for " + strings.Join(direct, ", ")
	}
	if f.verdict == failed {
		f.advice = e.env()
	}
	return f
}

// env returns how to set all variables: with robotsgate env, or, on a machine without the
// gate's CA, with the downloaded files.
func (e *diagnosis) env() []string {
	if e.gate == "" || e.holds(e.onDisk()) {
		return []string{`eval "$(robotsgate env)", with -c FILE if the gate has one`}
	}
	lines := append(e.download(), `echo "ca_certificate = $PWD/bundle.pem" > wgetrc`)
	values := map[string]int{} // the line that sets a value
	for _, v := range clientVars(e.gate, trust{ca: "$PWD/ca.pem", bundle: "$PWD/bundle.pem", wgetrc: "$PWD/wgetrc"}) {
		i, there := values[v.value]
		if !there {
			i = len(lines)
			values[v.value] = i
			lines = append(lines, "export")
		}
		lines[i] += " " + v.name + "=" + quoteFile(v.value)
	}
	return lines
}

// noProxy returns the hosts of no_proxy, except those that env sets.
func (e *diagnosis) noProxy() []string {
	var out []string
	for entry := range strings.FieldsFuncSeq(e.getenv("no_proxy")+","+e.getenv("NO_PROXY"), func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, entry) && !slices.Contains(out, entry) {
			out = append(out, escape.Printable(entry))
		}
	}
	return out
}

// trustVariables checks that the files that variables name hold the gate's CA.
func (e *diagnosis) trustVariables() finding {
	f := finding{subject: "trust", verdict: passed, text: "the files that variables name hold the CA"}
	var wrong []string
	set := 0
	for _, v := range clientVars("", trust{ca: "x", bundle: "x"}) {
		file := e.getenv(v.name)
		if v.value != "x" || file == "" { // wgetrc names no certificate
			continue
		}
		set++
		if data, err := os.ReadFile(file); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s names %s, which can't be read", v.name, escape.Printable(file)))
		} else if e.authority != nil && !e.holds(data) {
			wrong = append(wrong, fmt.Sprintf("%s names %s, which does not hold the gate's CA", v.name, escape.Printable(file)))
		}
	}
	switch {
	case !e.config.HTTPS.Intercept:
		f.text = "https is not intercepted, so that clients need no CA"
	case len(wrong) > 0:
		f.verdict, f.text, f.advice = failed, wrong[0], append(wrong[1:], e.env()...)
	case set == 0:
		f.verdict, f.text, f.advice = failed, "no variable names a file with the CA", e.env()
	}
	return f
}
