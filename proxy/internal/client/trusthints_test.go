package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
)

// A logBuffer is the log of a TrustHints.
type logBuffer struct{ gatetest.Output }

func (l *logBuffer) warnings() int {
	return strings.Count(l.String(), "most likely it does not trust the CA")
}

func (l *logBuffer) hints() *TrustHints {
	return &TrustHints{Log: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))}
}

func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"shop.example"}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<35, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A client that rejects the certificate with an alert gets a warning. A client that disconnects, or that does not speak
// TLS, may be a probe.
func TestFailedHandshakes(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	insecure := &tls.Config{InsecureSkipVerify: true}
	for _, c := range []struct {
		name string
		do   func(net.Conn)
		want int
	}{
		{"nothing", func(net.Conn) {}, 0},
		{"a byte", func(c net.Conn) { io.WriteString(c, "\x16") }, 0},
		{"a part of the hello", func(c net.Conn) { io.WriteString(c, "\x16\x03\x01\x02\x00\x01\x00") }, 0},
		{"a broken hello", func(c net.Conn) { io.WriteString(c, "\x16\x03\x01\x00\x02\x01\x00") }, 0},
		{"another protocol", func(c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\n\r\n") }, 0},
		{"hangs up at the certificate", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
				c.Close()
				return errors.New("no")
			}}).Handshake()
		}, 0},
		{"rejects the certificate, TLS 1.2", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool(), MaxVersion: tls.VersionTLS12}).Handshake()
		}, 1},
		{"rejects the certificate, TLS 1.3", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool()}).Handshake()
		}, 1},
		{"rejects the certificate with an alert in clear, as OpenSSL does", func(c net.Conn) { sendRecord(c, "\x14\x03\x03\x00\x01\x01\x15\x03\x03\x00\x02\x02\x30") }, 1},
		{"accepts the certificate", func(c net.Conn) { _ = tls.Client(c, insecure).Handshake() }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out logBuffer
				ours, theirs := net.Pipe()
				go func() {
					c.do(theirs)
					theirs.Close()
				}()
				h := out.hints()
				secure, err := h.Handshake(connFrom{ours, textAddr("192.0.2.7:4711")}, config, "shop.example:443")
				if (secure != nil) != (err == nil) {
					t.Errorf("got %v and %v", secure, err)
				}
				if err == nil {
					ours.Close()
				}
				if got := out.warnings(); got != c.want {
					t.Errorf("%d warnings, want %d: %v, %s", got, c.want, err, out.String())
				}
			})
		})
	}
}

// sendRecord sends a record in place of the client's Finished.
func sendRecord(c net.Conn, record string) {
	_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
		io.WriteString(c, record)
		c.Close()
		return errors.New("no")
	}}).Handshake()
}

// However many clients do not trust the CA, there is one line a minute.
func TestTrustHintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		h, config := out.hints(), &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
		for range 3 * 6 {
			ours, theirs := net.Pipe()
			go func() {
				_ = tls.Client(theirs, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool()}).Handshake()
				theirs.Close()
			}()
			_, _ = h.Handshake(connFrom{ours, textAddr("192.0.2.7:4711")}, config, "shop.example:443")
			time.Sleep(10 * time.Second) // fake clock
		}
		if n := out.warnings(); n != 3 || !strings.Contains(out.String(), "others_since_last=5") {
			t.Errorf("%d warnings in three minutes, want 3: %s", n, out.String())
		}
	})
}
