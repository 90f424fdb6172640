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
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
)

// A logBuffer is the log of a TrustHints.
type logBuffer struct{ gatetest.Output }

func (l *logBuffer) warnings() int {
	return strings.Count(l.String(), "a client does not trust the CA")
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

// A client that disconnects gets a warning if it has received the certificate, or rejects it
// with an alert. A client that disconnects before, or that does not speak TLS, rejects nothing.
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
		}, 1},
		{"rejects the certificate, TLS 1.2", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool(), MaxVersion: tls.VersionTLS12}).Handshake()
		}, 1},
		{"rejects the certificate, TLS 1.3", func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool()}).Handshake()
		}, 1},
		{"rejects the certificate with an alert in clear, as OpenSSL does", func(c net.Conn) { sendRecord(c, "\x14\x03\x03\x00\x01\x01\x15\x03\x03\x00\x02\x02\x30") }, 1},
		{"sends another alert in clear", func(c net.Conn) { sendRecord(c, "\x15\x03\x03\x00\x02\x02\x28") }, 0},
		{"sends a record that cannot be decrypted", func(c net.Conn) { sendRecord(c, "\x17\x03\x03\x00\x20"+strings.Repeat("x", 32)) }, 0},
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
				secure, err := h.Handshake(connFrom{ours, textAddr("192.0.2.7:4711")}, config, &TLSClient{Target: "shop.example:443"})
				if (secure != nil) != (err == nil) {
					t.Errorf("got %v and %v", secure, err)
				}
				if err == nil {
					ours.Close()
				}
				time.Sleep(hangupGrace + time.Second) // fake clock
				synctest.Wait()
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

// TestHangups: a client that hangs up gets a warning an hour, unless a request through TLS comes from its address.
func TestHangups(t *testing.T) {
	from := func(address string) net.Conn { return connFrom{from: textAddr(address + ":4711")} }
	hangUp := func(h *TrustHints) {
		h.ConnState(from("192.0.2.7"), &TLSClient{completed: time.Now()}, http.StateClosed)
	}
	reject := func(h *TrustHints, address string) { h.warn(from(address), &TLSClient{}, "alert", 0) }
	request := func(h *TrustHints, address string) {
		h.ConnState(from(address), &TLSClient{completed: time.Now()}, http.StateActive)
	}
	for _, c := range []struct {
		name string
		do   func(h *TrustHints)
		want int
	}{
		{"hangs up", hangUp, 1},
		{"comes back", func(h *TrustHints) { hangUp(h); request(h, "192.0.2.7") }, 0},
		{"was there before", func(h *TrustHints) {
			request(h, "192.0.2.7")
			time.Sleep(trustLasts / 2) // fake clock
			hangUp(h)
		}, 0},
		{"was there long before", func(h *TrustHints) {
			request(h, "192.0.2.7")
			time.Sleep(trustLasts) // fake clock
			hangUp(h)
		}, 1},
		{"sends an alert, and another client of the address does not", func(h *TrustHints) {
			request(h, "192.0.2.7")
			reject(h, "192.0.2.7")
		}, 1},
		{"the gate stops", func(h *TrustHints) { hangUp(h); h.Stop() }, 0},
		{"another client comes", func(h *TrustHints) { hangUp(h); request(h, "192.0.2.8") }, 1},
		{"goes on for three hours", func(h *TrustHints) {
			for range 3 * 60 * 6 {
				hangUp(h)
				time.Sleep(10 * time.Second) // fake clock
			}
		}, 3},
		{"hangs up long after the handshake", func(h *TrustHints) {
			h.ConnState(from("192.0.2.7"), &TLSClient{completed: time.Now().Add(-hangupSoon)}, http.StateClosed)
		}, 0},
		{"hangs up after a request", func(h *TrustHints) {
			c := &TLSClient{completed: time.Now()}
			h.ConnState(from("192.0.2.7"), c, http.StateActive)
			h.ConnState(from("192.0.2.7"), c, http.StateClosed)
		}, 0},
		{"hangs up in clear", func(h *TrustHints) { h.ConnState(from("192.0.2.7"), &TLSClient{}, http.StateClosed) }, 0},
		{"two addresses send alerts", func(h *TrustHints) {
			for range 10 {
				reject(h, "192.0.2.7")
				reject(h, "192.0.2.8")
			}
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out logBuffer
				c.do(out.hints())
				time.Sleep(hangupGrace + time.Second) // fake clock
				synctest.Wait()
				if n := out.warnings(); n != c.want {
					t.Errorf("%d warnings, want %d: %s", n, c.want, out.String())
				}
			})
		})
	}
}

// A connection that is reset, as by a client that exits, counts as a hangup too.
func TestReset(t *testing.T) {
	for _, err := range []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if !isHangup(err) {
			t.Errorf("%v is not a hangup", err)
		}
	}
	if isHangup(errors.New("tls: first record does not look like a TLS handshake")) {
		t.Error("another protocol is a hangup")
	}
}

// However many clients there are, what is kept of them is bounded, and dropped in time.
func TestTrustHintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		h := out.hints()
		flood := func() {
			for i := range 3 * maxClients {
				c := connFrom{from: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1))}
				h.warn(c, &TLSClient{}, "alert", 0)
				h.ConnState(c, &TLSClient{completed: time.Now()}, http.StateActive)
			}
			synctest.Wait()
		}
		flood()
		h.mu.Lock()
		if n := len(h.clients); n > maxClients {
			t.Errorf("%d clients are kept", n)
		}
		h.mu.Unlock()
		before := out.warnings()
		if before == 0 || before > maxClients {
			t.Errorf("%d warnings, want at most %d", before, maxClients)
		}
		time.Sleep(warnEvery) // fake clock
		flood()
		if out.warnings() == before {
			t.Error("there are no warnings any more")
		}
	})
}
