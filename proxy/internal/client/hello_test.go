package client

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A sent conn has been sent some bytes, and then ends.
type sent struct {
	net.Conn
	io.Reader
	answered bytes.Buffer
}

func (c *sent) Read(p []byte) (int, error)       { return c.Reader.Read(p) }
func (c *sent) Write(p []byte) (int, error)      { return c.answered.Write(p) }
func (c *sent) Close() error                     { return nil }
func (c *sent) SetDeadline(time.Time) error      { return nil }
func (c *sent) SetReadDeadline(time.Time) error  { return nil }
func (c *sent) SetWriteDeadline(time.Time) error { return nil }

// An extension of a ClientHello.
type extension struct {
	id   uint16
	data string
}

// sized puts the length of a text in front of it, in 1, 2 or 3 bytes.
func sized(bytes int, text string) string {
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(text)))
	return string(n[4-bytes:]) + text
}

// serverNames is the extension with these names (RFC 6066, section 3).
func serverNames(names ...string) extension {
	var list strings.Builder
	for _, name := range names {
		list.WriteString("\x00" + sized(2, name))
	}
	return extension{0, sized(2, list.String())}
}

// supportedVersions says TLS 1.3.
var supportedVersions = extension{43, "\x02\x03\x04"}

// message is a ClientHello without the heads of records.
func message(extensions ...extension) string {
	var all strings.Builder
	for _, e := range extensions {
		all.WriteString(string(binary.BigEndian.AppendUint16(nil, e.id)) + sized(2, e.data))
	}
	return "\x01" + sized(3, "\x03\x03"+strings.Repeat("r", 32)+"\x00"+sized(2, "\x13\x01\xc0\x2b")+"\x01\x00"+sized(2, all.String()))
}

// records cuts a message into records of this size.
func records(message string, size int) (all string) {
	for len(message) > 0 {
		n := min(size, len(message))
		all += "\x16\x03\x01" + sized(2, message[:n])
		message = message[n:]
	}
	return all
}

const maxRecord = 16 << 10

func TestReadHello(t *testing.T) {
	usual := []extension{supportedVersions, serverNames("shop.example")}
	filler := func(n int) extension { return extension{0xfafa, strings.Repeat("x", n)} }
	for _, c := range []struct {
		name, sent string
		want       string
		err        error
	}{
		{"usual", records(message(usual...), maxRecord), "shop.example", nil},
		{"with more behind it", records(message(usual...), maxRecord) + "more", "shop.example", nil},
		{"records of one byte", records(message(usual...), 1), "shop.example", nil},
		{"records of 50 bytes", records(message(usual...), 50), "shop.example", nil},
		{"the name is last", records(message(supportedVersions, filler(9000), serverNames("shop.example")), maxRecord), "shop.example", nil},
		{"10,000 bytes of extensions", records(message(append(usual, filler(10000))...), maxRecord), "shop.example", nil},
		{"64,000 bytes of extensions", records(message(append(usual, filler(64000))...), maxRecord), "shop.example", nil},
		{"64,000 bytes in small records", records(message(append(usual, filler(64000))...), 20), "", ErrLongHello},
		{"a length of 100,000", records("\x01\x01\x86\xa0"+strings.Repeat("x", 70000), maxRecord), "", ErrNotHello},
		{"no name", records(message(supportedVersions), maxRecord), "", nil},
		{"no extensions", records("\x01"+sized(3, "\x03\x03"+strings.Repeat("r", 32)+"\x00"+sized(2, "\xc0\x2b")+"\x01\x00"), maxRecord), "", nil},
		{"two names", records(message(supportedVersions, serverNames("a.example", "b.example")), maxRecord), "", ErrNotHello},
		{"two extensions with names", records(message(supportedVersions, serverNames("a.example"), serverNames("b.example")), maxRecord), "", ErrNotHello},
		{"an empty name", records(message(supportedVersions, serverNames("")), maxRecord), "", ErrNotHello},
		{"an empty list of names", records(message(supportedVersions, extension{0, sized(2, "")}), maxRecord), "", ErrNotHello},
		{"a name of another type", records(message(supportedVersions, extension{0, sized(2, "\x01"+sized(2, "shop.example"))}), maxRecord), "", nil},
		{"a name of another type first", records(message(supportedVersions, extension{0, sized(2, "\x01"+sized(2, "a.example")+"\x00"+sized(2, "b.example"))}), maxRecord), "b.example", nil},
		{"a trailing dot", records(message(supportedVersions, serverNames("shop.example.")), maxRecord), "", ErrNotHello},
		{"a name that is cut", records(message(supportedVersions, extension{0, sized(2, "\x00\x00\x20shop")}), maxRecord), "", ErrNotHello},
		{"a NUL", records(message(supportedVersions, serverNames("shop\x00.example")), maxRecord), "shop\x00.example", nil}, // the caller refuses it
		{"upper case", records(message(supportedVersions, serverNames("SHOP.example")), maxRecord), "SHOP.example", nil},
		{"300 letters", records(message(supportedVersions, serverNames(strings.Repeat("a", 300))), maxRecord), strings.Repeat("a", 300), nil},
		{"encrypted, with an outer name", records(message(supportedVersions, serverNames("public.example"), grease), maxRecord), "public.example", nil},
		{"encrypted, without a name", records(message(supportedVersions, grease), maxRecord), "", nil},
		{"encrypted parts that are malformed", records(message(supportedVersions, serverNames("public.example"), extension{0xfe0d, "\x00"}), maxRecord), "", ErrNotHello},
		{"TLS 1.0", records("\x01"+sized(3, "\x03\x01"+strings.Repeat("r", 32)+"\x00"+sized(2, "\xc0\x13")+"\x01\x00"+
			sized(2, "\x00\x00"+sized(2, serverNames("old.example").data))), maxRecord), "old.example", nil},
		{"an empty record first", "\x16\x03\x01\x00\x00" + records(message(usual...), maxRecord), "", ErrNotHello},
		{"another message", records("\x02"+message(usual...)[1:], maxRecord), "", ErrNotHello},
		{"another kind of record in the middle", records(message(usual...), 30)[:35] + "\x17\x03\x01\x00\x01x" + records(message(usual...), 30)[35:], "", ErrNotHello},
		{"a record that is too long", "\x16\x03\x01\xff\xff" + strings.Repeat("x", 70000), "", ErrNotHello},
		{"an HTTP request", "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", "", ErrNotHello},
		{"cut off", records(message(usual...), maxRecord)[:40], "", io.EOF},
		{"nothing", "", "", io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &sent{Reader: strings.NewReader(c.sent)}
			h, err := ReadHello(conn)
			if !errors.Is(err, c.err) && !(c.err == io.EOF && errors.Is(err, io.ErrUnexpectedEOF)) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if conn.answered.Len() > 0 {
				t.Errorf("answered %q", &conn.answered)
			}
			if err != nil {
				return
			}
			if h.ServerName != c.want {
				t.Errorf("got %q, want %q", h.ServerName, c.want)
			}
			rest, _ := io.ReadAll(conn)
			if string(h.Read)+string(rest) != c.sent {
				t.Error("bytes are missing")
			}
			if len(h.Read) > maxHello {
				t.Errorf("%d bytes are read", len(h.Read))
			}
		})
	}
}

// grease is an extension for encrypted parts, which are random (RFC 9849, section 6.2).
var grease = extension{0xfe0d, "\x00\x00\x01\x00\x01\x07" + sized(2, strings.Repeat("k", 32)) + sized(2, strings.Repeat("p", 144))}

// A ClientHello that does not come is waited for until the deadline.
func TestSlowHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		go io.WriteString(client, records(message(supportedVersions, serverNames("shop.example")), maxRecord)[:30])
		begun := time.Now()
		server.SetReadDeadline(begun.Add(10 * time.Second))
		if _, err := ReadHello(server); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// FuzzReadHello: if ReadHello returns a name, a server of crypto/tls that reads the same bytes sees that name; if it
// refuses a ClientHello, that server sees none.
func FuzzReadHello(f *testing.F) {
	usual := message(supportedVersions, serverNames("shop.example"))
	for _, size := range []int{1, 30, maxRecord} {
		f.Add([]byte(records(usual, size)))
	}
	f.Add([]byte(records(message(supportedVersions, serverNames("a.example", "b.example")), maxRecord)))
	f.Add([]byte(records(message(supportedVersions, serverNames("public.example"), grease), maxRecord)))
	f.Add([]byte(records(message(supportedVersions, serverNames("shop.example"), extension{0xfafa, strings.Repeat("x", 20000)}), 5000)))
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	leaf := certificate(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &sent{Reader: bytes.NewReader(data)}
		h, err := ReadHello(conn)
		var read net.Conn = &sent{Reader: bytes.NewReader(data)}
		if err == nil {
			if len(h.Read) > maxHello {
				t.Fatalf("%d bytes are read", len(h.Read))
			}
			read = NewPrefixed(conn, h.Read)
		}
		seen, name := false, ""
		_ = tls.Server(read, &tls.Config{GetCertificate: func(info *tls.ClientHelloInfo) (*tls.Certificate, error) {
			seen, name = true, info.ServerName
			return &leaf, nil
		}}).Handshake() // it fails: nothing follows
		switch {
		case seen && err != nil && !errors.Is(err, ErrLongHello):
			t.Errorf("refused with %v, and crypto/tls sees %q", err, name)
		case seen && err == nil && name != h.ServerName:
			t.Errorf("got %q, and crypto/tls sees %q", h.ServerName, name)
		}
	})
}
