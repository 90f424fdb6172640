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

// findGate looks for a gate where the shell's variables lead, then where the
// configuration has it listen.
func (e *examination) findGate(ctx context.Context) finding {
	f := finding{subject: "gate", verdict: well}
	configured := e.configured()
	places := []string{configured}
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"} {
		if v := e.getenv(name); v != "" {
			places = slices.Insert(places, len(places)-1, v)
		}
	}
	var failed error
	for _, place := range places {
		pem, address, err := e.ask(ctx, place)
		if err != nil {
			failed = err
			continue
		}
		e.gate, e.pem, e.authority = address, pem, signer(ctx, address, certificatesIn(pem))
		f.text = e.gate
		return f
	}
	f.verdict, f.text = unwell, fmt.Sprintf("none at %s: %v", configured, failed)
	f.advice = []string{"start it: robotsgate serve"}
	return f
}

// configured is the URL where the configuration has the gate listen.
func (e *examination) configured() string { return "http://" + dialable(e.config.Listen) }

// An answer is what was found at a proxy's URL.
type answer struct {
	pem     []byte
	address string
	err     error
}

// ask is certificateOf, once for each URL: what does not answer takes its time.
func (e *examination) ask(ctx context.Context, proxy string) (pem []byte, address string, err error) {
	a, known := e.asked[proxy]
	if !known {
		a.pem, a.address, a.err = certificateOf(ctx, proxy)
		e.asked[proxy] = a
	}
	return a.pem, a.address, a.err
}

// certificateOf asks what is at a proxy's URL for the certificate that clients
// must trust. It returns the URL without a login, and an error where that is no gate.
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
	// What is asked is which CA it has: that can't be told by the CA.
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

// signer returns which of the CAs that a gate hands out it signs with: after a
// renewal that is not the first, until the gate is told.
func signer(ctx context.Context, gate string, all []*x509.Certificate) *x509.Certificate {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, address, _ := strings.Cut(gate, "://")
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // nothing is asked of it
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

// proxyVariables looks whether the shell's variables lead to the gate.
func (e *examination) proxyVariables(ctx context.Context) finding {
	f := finding{subject: "variables", verdict: well, text: "lead to the gate"}
	var missing, astray []string
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		value := e.getenv(name)
		if value == "" {
			missing = append(missing, name)
			continue
		}
		if pem, _, err := e.ask(ctx, value); err != nil || e.gate == "" || !e.holds(pem) {
			astray = append(astray, name)
		}
	}
	switch {
	case len(astray) > 0:
		f.verdict, f.text = unwell, "not to the gate: "+strings.Join(astray, ", ")
	case len(missing) > 0:
		f.verdict, f.text = unwell, "not set: "+strings.Join(missing, ", ")+"; some clients read one case only"
	}
	around := e.around()
	switch {
	case slices.Contains(around, "*"):
		f.verdict, f.text = unwell, "no_proxy has a *, which leads every client around the gate"
	case f.verdict == well && len(around) > 0:
		f.text += "; no_proxy leads around it for " + strings.Join(around, ", ")
	}
	if f.verdict == unwell {
		f.advice = e.env()
	}
	return f
}

// env is how all variables are set: robotsgate env does it where it finds the gate's
// CA, and not on another machine.
func (e *examination) env() []string {
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

// around returns the hosts of no_proxy beside those that env sets.
func (e *examination) around() []string {
	var out []string
	for entry := range strings.FieldsFuncSeq(e.getenv("no_proxy")+","+e.getenv("NO_PROXY"), func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, entry) && !slices.Contains(out, entry) {
			out = append(out, escape.Printable(entry))
		}
	}
	return out
}

// trustVariables looks whether the files that variables name hold the gate's CA.
func (e *examination) trustVariables() finding {
	f := finding{subject: "trust", verdict: well, text: "the files that variables name hold the CA"}
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
		f.verdict, f.text, f.advice = unwell, wrong[0], append(wrong[1:], e.env()...)
	case set == 0:
		f.verdict, f.text, f.advice = unwell, "no variable names a file with the CA", e.env()
	}
	return f
}
