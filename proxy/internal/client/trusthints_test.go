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
	"net/netip"
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
		name           string
		do             func(net.Conn)
		gaveUp, warned bool
	}{
		{"nothing", func(net.Conn) {}, true, false},
		{"a byte", func(c net.Conn) { io.WriteString(c, "\x16") }, false, false},
		{"a part of the hello", func(c net.Conn) { io.WriteString(c, "\x16\x03\x01\x02\x00\x01\x00") }, false, false},
		{"a broken hello", func(c net.Conn) { io.WriteString(c, "\x16\x03\x01\x00\x02\x01\x00") }, true, false},
		{"another protocol", func(c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\n\r\n") }, false, false},
		{"hangs up at the certificate", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
				c.Close()
				return errors.New("no")
			}}).Handshake()
		}, true, false},
		{"rejects the certificate, TLS 1.2", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool(), MaxVersion: tls.VersionTLS12}).Handshake()
		}, true, true},
		{"rejects the certificate, TLS 1.3", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool()}).Handshake()
		}, true, true},
		{"rejects the certificate with an alert in clear, as OpenSSL does", func(c net.Conn) { sendRecord(c, "\x14\x03\x03\x00\x01\x01\x15\x03\x03\x00\x02\x02\x30") }, true, true},
		{"accepts the certificate", func(c net.Conn) { _ = tls.Client(c, insecure).Handshake() }, false, false},
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
				secure, err := h.Handshake(connFrom{ours, textAddr("192.0.2.7:4711")}, config, "shop.example:443", "")
				if (secure != nil) != (err == nil) {
					t.Errorf("got %v and %v", secure, err)
				}
				if err == nil {
					ours.Close()
				}
				if gaveUp := err != nil && GaveUp(err); gaveUp != c.gaveUp {
					t.Errorf("given up: %v, want %v: %v", gaveUp, c.gaveUp, err)
				}
				if warned := out.warnings() > 0; warned != c.warned {
					t.Errorf("warned: %v, want %v: %v, %s", warned, c.warned, err, out.String())
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

// TestTrustHintsAreBounded: there is one line an hour for an address, whatever the number of clients.
func TestTrustHintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		h, config := out.hints(), &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
		reject := func(client, address string) {
			ours, theirs := net.Pipe()
			go func() {
				_ = tls.Client(theirs, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool()}).Handshake()
				theirs.Close()
			}()
			_, _ = h.Handshake(connFrom{ours, textAddr(client + ":4711")}, config, "shop.example:443", address)
		}
		for range 3 * 6 {
			reject("192.0.2.7", "192.0.2.1:9309")
			reject("192.0.2.8", "")
			time.Sleep(10 * time.Minute) // fake clock
		}
		log := out.String()
		if n := out.warnings(); n != 6 || strings.Count(log, "page=http://192.0.2.1:9309/") != 3 || strings.Count(log, "page="+clientsDoc) != 3 {
			t.Errorf("%d warnings in three hours about two clients, want 6: %s", n, log)
		}
		for a := range 2 * maxWarned {
			h.due(netip.AddrFrom4([4]byte{10, 0, byte(a >> 8), byte(a)}))
		}
		if n := len(h.warned); n != maxWarned {
			t.Errorf("%d addresses are remembered, want %d", n, maxWarned)
		}
	})
}
