package client

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// What the readers make of the bytes of clients. What is not read is left for TLS or HTTP.
func TestReadSocksRequest(t *testing.T) {
	name255 := strings.Repeat("a", 255)
	for _, c := range []struct {
		name, sent string
		host       string
		port       uint16
		reply      byte
		reason     ConnRefusal
		rest       string
		err        error
	}{
		{name: "IPv4", sent: "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbbGET", host: "192.0.2.1", port: 443, rest: "GET"},
		{name: "IPv6", sent: "\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x50", host: "2001:db8::1", port: 80},
		{name: "IPv4 in IPv6", sent: "\x05\x01\x00\x04" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01\x00\x50", host: "127.0.0.1", port: 80},
		{name: "a name", sent: "\x05\x01\x00\x03\x0bexample.com\x01\xbb\x16\x03", host: "example.com", port: 443, rest: "\x16\x03"},
		{name: "the longest name", sent: "\x05\x01\x00\x03\xff" + name255 + "\x01\xbb", host: name255, port: 443},
		{name: "no name", sent: "\x05\x01\x00\x03\x00\x01\xbb", port: 443},
		{name: "BIND", sent: "\x05\x02\x00\x01\xc0\x00\x02\x01\x01\xbb", reply: 7, reason: SocksCommand, rest: "\xc0\x00\x02\x01\x01\xbb"},
		{name: "UDP ASSOCIATE", sent: "\x05\x03\x00\x01", reply: 7, reason: SocksCommand},
		{name: "command 0", sent: "\x05\x00\x00\x01", reply: 7, reason: SocksCommand},
		{name: "another type of address", sent: "\x05\x01\x00\x02", reply: 8, reason: SocksAddressType},
		{name: "another version", sent: "\x04\x01\x00\x01", reply: 1, reason: SocksMalformed},
		{name: "cut in the head", sent: "\x05\x01\x00", err: io.ErrUnexpectedEOF},
		{name: "cut in the address", sent: "\x05\x01\x00\x01\xc0\x00", err: io.ErrUnexpectedEOF},
		{name: "cut in the name", sent: "\x05\x01\x00\x03\x0bexam", err: io.ErrUnexpectedEOF},
		{name: "cut in the port", sent: "\x05\x01\x00\x03\x01a\x01", err: io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := strings.NewReader(c.sent)
			req, reply, reason, err := ReadSocksRequest(r)
			rest, _ := io.ReadAll(r)
			if !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if err == nil && (req.Host != c.host || req.Port != c.port || reply != c.reply || reason != c.reason || string(rest) != c.rest) {
				t.Errorf("got %+v, reply %d, %q, rest %q", req, reply, reason, rest)
			}
		})
	}
}

// A text has no length beyond 255, and none of the readers reads more than its message.
func FuzzReadSocks(f *testing.F) {
	for _, seed := range []string{"\x05\x01\x00", "\x05\x02\x00\x02", "\x01\x04team\x06secret", "\x05\x01\x00\x03\x0bexample.com\x01\xbb",
		"\x05\x01\x00\x04", "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50GET /"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		read := func(most int, do func(r io.Reader) []byte) {
			r := bytes.NewReader(sent)
			again := do(r)
			n := len(sent) - r.Len()
			if n > most {
				t.Errorf("read %d bytes, at most %d are allowed", n, most)
			}
			if again != nil && !bytes.Equal(again, sent[:n]) {
				t.Errorf("read %q of %q", again, sent[:n])
			}
		}
		read(257, func(r io.Reader) []byte {
			methods, err := ReadSocksGreeting(r)
			if err != nil {
				return nil
			}
			return slices.Concat([]byte{5, byte(len(methods))}, methods)
		})
		read(513, func(r io.Reader) []byte {
			user, password, err := ReadSocksLogin(r)
			if err != nil {
				return nil
			}
			return slices.Concat([]byte{1, byte(len(user))}, []byte(user), []byte{byte(len(password))}, []byte(password))
		})
		read(262, func(r io.Reader) []byte {
			req, reply, reason, err := ReadSocksRequest(r)
			if err == nil && (reply == 0) != (reason == "") {
				t.Errorf("reply %d, reason %q", reply, reason)
			}
			if err != nil || reply != 0 || sent[3] != 3 {
				return nil
			}
			return slices.Concat([]byte{5, 1, sent[2], 3, byte(len(req.Host))}, []byte(req.Host), []byte{byte(req.Port >> 8), byte(req.Port)})
		})
	})
}
