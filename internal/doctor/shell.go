package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// A diagnosis has what is known of the gate and this shell.
type diagnosis struct {
	config *gate.Config
	dir    string
	gate   gateAnswer // the first one that is found; it has an error if there is none
}

// A gateAnswer is what a gate says about itself.
type gateAnswer struct {
	url    string              // without a login
	cas    []*x509.Certificate // that clients must trust
	signer *x509.Certificate   // the one of these that it signs with: after a renewal not the first, until it reloads
	err    error               // there is no gate
}

var proxyNames = []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"}

// findGate looks for a gate at the proxies that the shell's variables name, then at the address in the configuration.
func (e *diagnosis) findGate(ctx context.Context) finding {
	var none []string
	places := []string{e.configured()}
	for _, name := range proxyNames {
		places = append(places, os.Getenv(name))
	}
	slices.Reverse(places) // the configuration comes last
	for i, place := range places {
		if place == "" || slices.Contains(places[:i], place) {
			continue
		}
		if e.gate = ask(ctx, place); e.gate.err == nil {
			return finding{"gate", passed, e.gate.url, nil}
		}
		none = append(none, fmt.Sprintf("none at %s: %v", withoutLogin(place), e.gate.err))
	}
	start, file := named(e.config, "robotsgate serve"), e.config.File()
	if file == "" {
		start, file = start+", with -c FILE if it has one", "FILE and use -c FILE"
	}
	return fault("gate", strings.Join(none, "; "), "start it: "+start,
		"if it runs at another address, such as that of --listen: paste the variables that serve printed, or write the address as listen: into "+file)
}

// configured returns the gate's URL by the configuration.
func (e *diagnosis) configured() string { return "http://" + clientenv.Dialable(e.config.Listen) }

// ask asks for the certificates of the gate at a proxy's URL. A gate answers TLS at every one, whatever its scheme.
func ask(ctx context.Context, proxy string) (a gateAnswer) {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy // as curl and wget read it
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		a.err = errors.New("it is no URL") // and may hold a password
		return a
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "80")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	// The question is which CA the gate has, so its certificate can't be verified yet.
	resp, body, err := get(ctx, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, "https://"+u.Host+"/ca.pem")
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		a.err = errors.New("nothing listens there, so no gate runs")
		return a
	case err != nil:
		a.err = errors.New("no connection")
		return a
	}
	a.url, a.cas = "http://"+u.Host, certificatesIn(body)
	for _, c := range a.cas {
		if resp.TLS.PeerCertificates[0].CheckSignatureFrom(c) == nil {
			a.signer = c
		}
	}
	if resp.StatusCode != http.StatusOK || a.signer == nil {
		a.err = errors.New("what answers is no gate")
	}
	return a
}

// get sends one request, and reads the response, up to a size that no page of the gate has.
func get(ctx context.Context, transport *http.Transport, address string) (resp *http.Response, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Close = true
	if resp, err = transport.RoundTrip(req); err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp, body, err
}

func certificatesIn(data []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// certificate checks the CA that the gate signs with.
func (e *diagnosis) certificate() finding {
	file := filepath.Join(e.dir, "ca.pem")
	if e.config.HTTPS.CACert != "" {
		file = e.config.HTTPS.CACert
	}
	data, _ := os.ReadFile(file)
	all, ends, left := certificatesIn(data), console.Date(e.gate.signer.NotAfter), time.Until(e.gate.signer.NotAfter)
	renew := named(e.config, "robotsgate ca --renew") + ", give clients the new certificate, then send the gate a SIGHUP or restart it"
	switch {
	case left <= 0:
		return fault("CA", "expired on "+ends, renew)
	case !slices.ContainsFunc(all, e.gate.signer.Equal):
		return finding{"CA", unknown, fmt.Sprintf("%s/ca.pem, until %s; %s does not hold it", e.gate.url, ends, file), []string{"name the gate's configuration with -c, if it is on this machine"}}
	case !all[0].Equal(e.gate.signer):
		return finding{"CA", passed, fmt.Sprintf("%s holds a new one; the gate signs with the old one until a SIGHUP or a restart, at most until %s", file, ends), nil}
	case left < 30*24*time.Hour:
		return fault("CA", fmt.Sprintf("%s, until %s, which is soon", file, ends), renew)
	}
	return finding{"CA", passed, fmt.Sprintf("%s, until %s", file, ends), nil}
}

// proxyVariables checks that the shell's variables name the gate, or the address in the configuration if none runs.
func (e *diagnosis) proxyVariables(ctx context.Context) finding {
	var missing, wrong []string
	for _, name := range proxyNames {
		value := os.Getenv(name)
		if value == "" {
			missing = append(missing, name)
			continue
		}
		leads := value == e.configured()
		if e.gate.err == nil {
			leads = slices.ContainsFunc(ask(ctx, value).cas, e.gate.signer.Equal)
		}
		if !leads {
			wrong = append(wrong, name+"="+withoutLogin(value))
		}
	}
	switch {
	case slices.Contains(strings.FieldsFunc(os.Getenv("no_proxy")+","+os.Getenv("NO_PROXY"), func(r rune) bool { return r == ',' || r == ' ' }), "*"):
		return fault("variables", "no_proxy has a *, which leads every client around the gate", e.env())
	case len(wrong) > 0:
		return fault("variables", "not to the gate: "+strings.Join(wrong, ", "), e.env())
	case len(missing) == len(proxyNames):
		return fault("variables", "none is set: this shell is not set up for a gate", e.env())
	case len(missing) > 0:
		return fault("variables", "not set: "+strings.Join(missing, ", ")+"; some clients read one case only", e.env())
	case e.gate.err != nil:
		return finding{"variables", passed, "lead to " + e.configured() + ", where no gate runs now", nil}
	}
	return finding{"variables", passed, "lead to the gate", nil}
}

// trustVariables checks that the files that variables name hold the gate's CA, and other roots too where a client trusts
// nothing but the file.
func (e *diagnosis) trustVariables() finding {
	if !e.config.HTTPS.Intercept {
		return finding{"trust", passed, "https is not intercepted, so that clients need no CA", nil}
	}
	var wrong []string
	set := 0
	for _, v := range clientenv.For("", ca.ClientFiles{Cert: "ca", Bundle: "bundle"}) {
		file := os.Getenv(v.Name)
		if file == "" || v.Value != "ca" && v.Value != "bundle" {
			continue
		}
		set++
		data, err := os.ReadFile(file)
		all := certificatesIn(data)
		switch {
		case err != nil:
			wrong = append(wrong, v.Name+" names "+file+", which can't be read")
		case !slices.ContainsFunc(all, e.gate.signer.Equal):
			wrong = append(wrong, v.Name+" names "+file+", which does not hold the gate's CA")
		case v.Value == "bundle" && len(all) <= len(e.gate.cas):
			wrong = append(wrong, v.Name+" names "+file+", which holds the gate's CA alone: its clients trust no host that is reached without interception")
		}
	}
	switch {
	case len(wrong) > 0:
		return fault("trust", strings.Join(wrong, "; "), e.env())
	case set == 0:
		return fault("trust", "no variable names a file with the CA", e.env())
	}
	return finding{"trust", passed, "the files that variables name hold the CA", nil}
}

// env returns a line for a shell that sets all variables: by robotsgate env, or, on a machine without the gate's CA, by
// the gate's own page.
func (e *diagnosis) env() string {
	if data, err := os.ReadFile(filepath.Join(e.dir, "bundle.pem")); e.gate.err == nil && (err != nil || !slices.ContainsFunc(certificatesIn(data), e.gate.signer.Equal)) {
		return `eval "$(curl -fsS --noproxy '*' ` + e.gate.url + `/env)"`
	}
	line := `eval "$(` + named(e.config, "robotsgate env") + `)"`
	if e.config.File() == "" {
		line += ", with -c FILE if the gate has one"
	}
	return line
}

// withoutLogin returns a proxy's URL without its login, also if it is no URL.
func withoutLogin(proxy string) string {
	scheme, _, ok := strings.Cut(proxy, "://")
	if scheme += "://"; !ok {
		scheme = ""
	}
	return scheme + proxy[max(len(scheme), strings.LastIndexByte(proxy, '@')+1):]
}
