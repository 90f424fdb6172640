// Package ca is the certificate authority with which the gate looks into TLS:
// its root, the leaves it signs, and the bundle that clients trust.
package ca

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// An Authority signs certificates for hosts. It is safe for concurrent use.
type Authority struct {
	read    func() (*pair, error) // as the files are now
	current atomic.Pointer[pair]

	// OnLeaf is told of every leaf that is handed out, with the time that signing it
	// took, 0 where it was there. It may be nil, and is set before the first Leaf.
	OnLeaf func(signed time.Duration)
}

// A pair is a CA's certificate and key with all that hangs on them: a reload
// replaces them together.
type pair struct {
	cert     *x509.Certificate
	key      crypto.Signer
	chain    [][]byte            // what a leaf is sent with: the certificates between it and the root
	others   []*x509.Certificate // that are in the file too: the chain, and CAs that this one has replaced
	certFile string
	keyFile  string
	leaves   leaves
}

// Load returns the authority whose certificate and private key are in the two
// PEM files. The first certificate is the one that signs; the others are its
// chain. The key may be RSA, ECDSA or Ed25519.
func Load(certFile, keyFile string) (*Authority, error) {
	return newAuthority(func() (*pair, error) {
		p, err := load(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		return p, p.checkTime(time.Now(), "get a new one from whoever issued it")
	})
}

func newAuthority(read func() (*pair, error)) (*Authority, error) {
	p, err := read()
	if err != nil {
		return nil, err
	}
	a := &Authority{read: read}
	a.current.Store(p)
	return a, nil
}

// Reload makes a sign with what is in its files now, and reports whether that is
// another CA. If they are not in order it returns the error and changes nothing.
func (a *Authority) Reload() (changed bool, err error) {
	p, err := a.read()
	if err != nil {
		return false, err
	}
	if p.cert.Equal(a.current.Load().cert) {
		return false, nil // and the leaves stay good
	}
	a.current.Store(p)
	return true, nil
}

// load does all but look at the clock.
func load(certFile, keyFile string) (*pair, error) {
	certs, err := readCertificates(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, err
	}
	p := &pair{cert: certs[0], key: key, others: certs[1:], certFile: certFile, keyFile: keyFile}
	p.leaves.init(maxLeaves, p.cert.NotAfter)
	if !equalKeys(p.cert.PublicKey, key.Public()) {
		return nil, &mismatchError{keyFile, certFile}
	}
	switch {
	case !p.cert.IsCA || !p.cert.BasicConstraintsValid:
		return nil, fmt.Errorf("%s: the first certificate is not a CA's: it must have the basic constraint CA:TRUE", certFile)
	case p.cert.KeyUsage != 0 && p.cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, fmt.Errorf("%s: the CA may not sign certificates: its key usage must include certificate signing", certFile)
	}
	for _, c := range certs {
		if !selfSigned(c) {
			p.chain = append(p.chain, c.Raw)
		}
	}
	return p, nil
}

// exposed warns if other users could take the key or put another in its place.
func exposed(keyFile string) []string {
	if runtime.GOOS == "windows" {
		return nil // its permissions are not in the mode
	}
	var w []string
	if info, err := os.Stat(keyFile); err == nil {
		others := os.FileMode(0o077)
		if !belongsToUs(info) {
			others = 0o007 // we are in the group that its owner, as Kubernetes, lets read it
		}
		if info.Mode()&others != 0 {
			w = append(w, fmt.Sprintf("%s can be read by other users of this machine: chmod 600 it", keyFile))
		}
	}
	dir := filepath.Dir(keyFile)
	// In a sticky folder nobody replaces what is not his, and only its owner could mend it.
	if info, err := os.Stat(dir); err == nil && info.Mode()&0o002 != 0 && (info.Mode()&os.ModeSticky == 0 || belongsToUs(info)) {
		w = append(w, fmt.Sprintf("%s can be written by every user of this machine, so the CA's key can be replaced: chmod 700 it", dir))
	}
	return w
}

// PEM returns the certificates that clients must trust: the CA's, its chain if it
// has one, and those that it has replaced, until they end, since a gate may still
// sign with them. If the CA has been renewed since, the new one is the first: who
// asks now is to be ready for it. There is never a key among them, whatever else
// the files hold.
func (a *Authority) PEM() []byte {
	p, now := a.current.Load(), time.Now()
	all := append([]*x509.Certificate{p.cert}, p.others...)
	if renewed, err := readCertificates(p.certFile); err == nil && slices.ContainsFunc(renewed, p.cert.Equal) {
		all = renewed
	}
	var out []byte
	for _, c := range all {
		if c.Equal(p.cert) || !selfSigned(c) || now.Before(c.NotAfter) {
			out = append(out, encodeCertificate(c.Raw)...)
		}
	}
	return out
}

// CertFile returns the path of the file with the CA's certificate.
func (a *Authority) CertFile() string { return a.current.Load().certFile }

// Certificate returns the certificate that signs. It must not be changed.
func (a *Authority) Certificate() *x509.Certificate { return a.current.Load().cert }

// Former returns the CAs of ours that this one has replaced and that have not
// ended: clients must trust them too, for as long as a gate signs with them.
func (a *Authority) Former() []*x509.Certificate { return former(a.current.Load().others, time.Now()) }

// Leaf returns a certificate for host, a DNS name or a literal IP address,
// signed by a. It comes from a cache unless it is new or near its end.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	return a.current.Load().leaf(host, a.OnLeaf)
}

// soon is how long before its end a CA deserves a warning.
const soon = 30 * 24 * time.Hour

// Warnings returns what works but should be mended, as of now.
func (a *Authority) Warnings() []string {
	p := a.current.Load()
	w := exposed(p.keyFile)
	// Another process may have renewed it.
	if certs, err := readCertificates(p.certFile); err == nil && !certs[0].Equal(p.cert) {
		return append(w, fmt.Sprintf("%s holds a new CA, and this gate signs with the old one, until %s: send it a SIGHUP or restart it when all clients trust the new one", p.certFile, day(p.cert.NotAfter)))
	}
	advice := "run robotsgate ca --renew, give clients the new certificate or bundle, then send the gate a SIGHUP or restart it; they trust both until then"
	if !ours(p.cert) {
		advice = "get a new one from whoever issued it, and restart the gate"
	}
	switch left := time.Until(p.cert.NotAfter); {
	case left <= 0:
		w = append(w, fmt.Sprintf("%s: the CA expired on %s, and no client accepts what it signs: %s", p.certFile, day(p.cert.NotAfter), advice))
	case left < soon:
		w = append(w, fmt.Sprintf("%s: the CA expires on %s: %s", p.certFile, day(p.cert.NotAfter), advice))
	}
	return w
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// checkTime returns an error that ends in advice if the CA is not valid now.
func (p *pair) checkTime(now time.Time, advice string) error {
	switch {
	case now.After(p.cert.NotAfter):
		return fmt.Errorf("%s: the CA expired on %s: %s", p.certFile, day(p.cert.NotAfter), advice)
	case now.Before(p.cert.NotBefore):
		return fmt.Errorf("%s: the CA is not valid before %s: check this machine's clock", p.certFile, p.cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// A mismatchError is its own type because it may be about a pair that another
// process is replacing at this moment.
type mismatchError struct{ keyFile, certFile string }

func (e *mismatchError) Error() string {
	return fmt.Sprintf("%s is not the key of %s: use the two that belong together", e.keyFile, e.certFile)
}

func equalKeys(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// selfSigned recognises a root, which clients have and need not be sent.
func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(c) == nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var errNoPEM = errors.New("nothing in PEM form in it (-----BEGIN …-----): convert it with openssl")
