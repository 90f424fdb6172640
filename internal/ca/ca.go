// Package ca is the gate's certificate authority (CA): its root, the leaf
// certificates that it signs for intercepted hosts, and the bundle that clients trust.
//
// [Open] returns the CA in a folder, and makes it at first use. [Load] returns one
// from two files. [Authority.Leaf] signs.
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
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// An Authority signs certificates for hosts. It is safe for concurrent use.
type Authority struct {
	read    func() (*pair, error) // as the files are now
	current atomic.Pointer[pair]

	// OnLeaf is called for every leaf that Leaf returns, with the time that signing
	// took: 0 for a leaf from the cache. It may be nil, and is set before the first
	// call of Leaf.
	OnLeaf func(signed time.Duration)
}

// A pair is a CA's certificate and key, and all that depends on them. Reload
// replaces it as a whole.
type pair struct {
	cert     *x509.Certificate
	key      crypto.Signer
	chain    [][]byte            // sent with a leaf: the certificates between it and the root
	others   []*x509.Certificate // the rest of the file: the chain, and CAs that this one replaced
	certFile string
	keyFile  string
	leaves   leaves
}

// Load returns the authority with the certificate and private key in the two PEM
// files. The certificate of the key is the one that signs; the others are its
// chain. The key may be RSA, ECDSA or Ed25519.
func Load(certFile, keyFile string) (*Authority, error) {
	return newAuthority(func() (*pair, error) { return load(certFile, keyFile) })
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

// Reload reads the files again, and reports whether they hold another CA. After an
// error nothing has changed.
func (a *Authority) Reload() (changed bool, err error) {
	p, err := a.read()
	if err != nil {
		return false, err
	}
	if p.cert.Equal(a.current.Load().cert) {
		return false, nil // keep the leaves
	}
	a.current.Store(p)
	return true, nil
}

// load reads and checks a pair.
func load(certFile, keyFile string) (*pair, error) {
	// The key comes first: another process that renews the CA writes the key last, when the other file has both the old
	// and the new certificate.
	key, err := readKey(keyFile)
	if err != nil {
		return nil, err
	}
	certs, err := readCertificates(certFile)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(certs, func(c *x509.Certificate) bool { return equalKeys(c.PublicKey, key.Public()) })
	if i < 0 {
		return nil, fmt.Errorf("%s is not the key of %s: %w", keyFile, certFile, errMismatch)
	}
	p := &pair{cert: certs[i], key: key, others: slices.Delete(slices.Clone(certs), i, i+1), certFile: certFile, keyFile: keyFile}
	p.leaves.byName = map[string]*tls.Certificate{}
	switch {
	case !p.cert.IsCA || !p.cert.BasicConstraintsValid:
		return nil, fmt.Errorf("%s: the key's certificate is not a CA's: it must have the basic constraint CA:TRUE", certFile)
	case p.cert.KeyUsage != 0 && p.cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, fmt.Errorf("%s: the CA may not sign certificates: its key usage must include certificate signing", certFile)
	}
	for _, c := range certs {
		if !selfSigned(c) {
			p.chain = append(p.chain, c.Raw)
		}
	}
	return p, p.checkTime(time.Now())
}

// exposed returns a warning if all users can read the key. Its group may, such as that of a Secret in Kubernetes.
func exposed(keyFile string) []string {
	info, err := os.Stat(keyFile)
	if err != nil || runtime.GOOS == "windows" || info.Mode()&0o007 == 0 { // Windows has no permissions in the mode
		return nil
	}
	return []string{fmt.Sprintf("%s can be read by other users of this machine: chmod 600 it", keyFile)}
}

// PEM returns the certificates that clients must trust: the CA's, its chain, and
// the CAs that it replaced, until they expire, since a gate may still sign with
// them. If another process has renewed the CA, the new one comes first, so that
// clients trust it before the gate uses it. Keys in the file are left out.
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

// Former returns the CAs made by this package that this one replaced and that
// have not expired. Clients must trust them while a gate signs with them.
func (a *Authority) Former() []*x509.Certificate { return former(a.current.Load().others, time.Now()) }

// soon is how long before its end Warnings mentions a CA.
const soon = 30 * 24 * time.Hour

// Warnings returns the problems that do not keep a from working now.
func (a *Authority) Warnings() []string {
	p := a.current.Load()
	w := exposed(p.keyFile)
	// Another process may have renewed it.
	if renewed, err := load(p.certFile, p.keyFile); err == nil && !renewed.cert.Equal(p.cert) {
		return append(w, fmt.Sprintf("%s holds a new CA, and this gate signs with the old one, until %s: send it a SIGHUP or restart it when all clients trust the new one", p.certFile, day(p.cert.NotAfter)))
	}
	if err := p.checkTime(time.Now()); err != nil {
		return append(w, err.Error())
	}
	if time.Until(p.cert.NotAfter) < soon {
		advice := "get a new one from its issuer, and restart the gate"
		if ours(p.cert) {
			advice = "run robotsgate ca --renew, give clients the new certificate or bundle, then send the gate a SIGHUP or restart it; they trust both until then"
		}
		w = append(w, fmt.Sprintf("%s: the CA expires on %s: %s", p.certFile, day(p.cert.NotAfter), advice))
	}
	return w
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// checkTime returns an error if the CA is not valid now.
func (p *pair) checkTime(now time.Time) error {
	switch {
	case now.After(p.cert.NotAfter):
		advice := "get a new one from its issuer"
		if ours(p.cert) {
			advice = "make a new one with robotsgate ca --renew, and give it to clients"
		}
		return fmt.Errorf("%s: the CA expired on %s: %s", p.certFile, day(p.cert.NotAfter), advice)
	case now.Before(p.cert.NotBefore):
		return fmt.Errorf("%s: the CA is not valid before %s: check this machine's clock", p.certFile, p.cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

func equalKeys(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// selfSigned reports whether c is a root, which need not be sent to clients.
func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(c) == nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var (
	errNoPEM    = errors.New("nothing in PEM form in it (-----BEGIN …-----): convert it with openssl")
	errMismatch = errors.New("use the two that belong together")
)
