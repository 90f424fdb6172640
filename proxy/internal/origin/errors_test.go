package origin

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// TestReason: refusals and the log have readable errors, which say what to do about a failure, and do not reveal addresses
// of the gate's network.
func TestReason(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "x.example", Server: "10.0.0.53:53", IsNotFound: true}
	invalid := func(err error, sent ...*x509.Certificate) error {
		return fmt.Errorf("tls: %w", &tls.CertificateVerificationError{Err: err, UnverifiedCertificates: sent})
	}
	leaf := &x509.Certificate{RawSubject: []byte("leaf"), RawIssuer: []byte("CA"), Issuer: pkix.Name{CommonName: "Some CA"}, DNSNames: []string{"a.example"}}
	root := &x509.Certificate{RawSubject: []byte("CA"), RawIssuer: []byte("CA")}
	const ownCA = "certificate signed by unknown authority; if its CA is your own, name it in egress.ca_file"
	for _, test := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: dns}, "its name does not resolve"},
		{parentFailed(dns), ErrParent.Error() + ": " + dns.Error() + "; check " + ParentSettings},
		{fmt.Errorf("parent.example: %w", parentFailed(io.EOF)), ErrParent.Error() + ": EOF; check " + ParentSettings},
		{parentFailed(invalid(x509.UnknownAuthorityError{})), ErrParent.Error() + ": tls: tls: failed to verify certificate: x509: certificate signed by unknown authority; check " + ParentSettings},
		{invalid(x509.UnknownAuthorityError{Cert: leaf}, leaf, root), ownCA},
		{invalid(x509.UnknownAuthorityError{Cert: leaf}, leaf), strings.Replace(ownCA, ";", `; the chain is incomplete: the origin does not send the certificate of "CN=Some CA";`, 1)},
		{invalid(x509.HostnameError{Certificate: leaf, Host: "b.example"}, leaf), "certificate is valid for a.example, not b.example"},
		{invalid(x509.CertificateInvalidError{Reason: x509.Expired}, leaf), "certificate has expired or is not yet valid: "},
		{&AnswerError{Why: "too many transfer encodings"}, "the answer cannot be read: too many transfer encodings"},
	} {
		got := caused(test.err)
		text := got.Error()
		if w, ok := errors.AsType[worded](got); ok {
			text = w.Reason()
		}
		if text != test.want {
			t.Errorf("%v: got %q, want %q", test.err, text, test.want)
		}
	}
}

// TestCauses: each error says whether it is the origin's fault, and whether the origin counts as unreachable.
func TestCauses(t *testing.T) {
	for err, want := range map[error][2]bool{
		prohibit("port 25"):                                    {true, false},
		caused(&net.DNSError{Err: "no such host"}):             {true, false},
		caused(&net.DNSError{Err: shortages[0].errno.Error()}): {false, false},
		caused(fmt.Errorf("dial: %w", shortages[0].errno)):     {false, false},
		parentFailed(&net.DNSError{Err: "no such host"}):       {false, true},
	} {
		fault, ok := errors.AsType[interface {
			error
			OriginAtFault() bool
			Outage() bool
		}](err)
		if !ok || fault.OriginAtFault() != want[0] || fault.Outage() != want[1] {
			t.Errorf("%v: got %v, want %v", err, fault, want)
		}
	}
}
