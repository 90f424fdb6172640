package origin

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
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
		{parentFailed(dns), ErrParent.Error() + ": " + dns.Error() + "; check " + parentSettings},
		{fmt.Errorf("parent.example: %w", parentFailed(io.EOF)), ErrParent.Error() + ": EOF; check " + parentSettings},
		{parentFailed(invalid(x509.UnknownAuthorityError{})), ErrParent.Error() + ": tls: tls: failed to verify certificate: x509: certificate signed by unknown authority; check " + parentSettings},
		{invalid(x509.UnknownAuthorityError{Cert: leaf}, leaf, root), ownCA},
		{invalid(x509.UnknownAuthorityError{Cert: leaf}, leaf), strings.Replace(ownCA, ";", `; the chain is incomplete: the origin does not send the certificate of "CN=Some CA";`, 1)},
		{invalid(x509.HostnameError{Certificate: leaf, Host: "b.example"}, leaf), "certificate is valid for a.example, not b.example"},
		{invalid(x509.CertificateInvalidError{Reason: x509.Expired}, leaf), "certificate has expired or is not yet valid: "},
		{&answerError{Why: "too many transfer encodings"}, "the answer cannot be read: too many transfer encodings"},
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
		prohibit("port 25"):                                {true, false},
		caused(&net.DNSError{Err: "no such host"}):         {true, false},
		caused(&net.DNSError{Err: syscall.ENFILE.Error()}): {false, false},
		caused(fmt.Errorf("dial: %w", syscall.EMFILE)):     {false, false},
		parentFailed(&net.DNSError{Err: "no such host"}):   {false, true},
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

// TestExplain: what the gate itself could not do names its cause, and the key to change.
func TestExplain(t *testing.T) {
	unreadable := func(why, fault string) error {
		return fmt.Errorf("sent: %w", &answerError{Why: why, Fault: fault})
	}
	certificate := func(err error) error {
		return &tls.CertificateVerificationError{Err: err}
	}
	const noKey = "egress.ca_file"
	for _, c := range []struct {
		err                 error
		status              int
		fault, names, lacks string
	}{
		{os.ErrDeadlineExceeded, 504, "http_response_timeout", "egress.response_header_timeout", ""},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, 504, "connection_timeout", "egress.dial_timeout", "response_header"},
		{certificate(x509.UnknownAuthorityError{}), 502, "tls_certificate_error", noKey, ""},
		{certificate(x509.CertificateInvalidError{Reason: x509.Expired}), 502, "tls_certificate_error", "expired", noKey},
		{certificate(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a.example"}}, Host: "b.example"}), 502, "tls_certificate_error", "valid for a.example, not b.example", noKey},
		{unreadable("unsupported transfer encoding", "http_response_transfer_coding"), 502, "http_response_transfer_coding", "unsupported transfer encoding", "reached"},
		{unreadable(`malformed HTTP response "x"`, ""), 502, "http_protocol_error", `malformed HTTP response "x"`, "reached"},
		{fmt.Errorf("%w: it answered 502", errNoTunnel), 502, "destination_unavailable", "parent proxy", ""},
		{fmt.Errorf("%w: refused", ErrParent), 502, "proxy_configuration_error", "egress.proxy", "origin"},
	} {
		p := Explain(c.err, "a.example")
		if text := p.Title + ": " + p.Detail; p.Status != c.status || p.Fault != c.fault || !strings.Contains(text, c.names) || c.lacks != "" && strings.Contains(text, c.lacks) {
			t.Errorf("%v: got %d %s %q, want %d %s with %q and without %q", c.err, p.Status, p.Fault, text, c.status, c.fault, c.names, c.lacks)
		}
	}
}
