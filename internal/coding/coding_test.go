package coding

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A flusher is an encoder of any coding.
type flusher interface {
	io.WriteCloser
	Flush() error
}

// encoders by the name of the coding; "raw deflate" is sent as "deflate".
var encoders = map[string]func(io.Writer) flusher{
	"gzip":        func(w io.Writer) flusher { return gzip.NewWriter(w) },
	"x-gzip":      func(w io.Writer) flusher { return gzip.NewWriter(w) },
	"deflate":     func(w io.Writer) flusher { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) flusher { f, _ := flate.NewWriter(w, 6); return f },
	"br":          func(w io.Writer) flusher { return brotli.NewWriter(w) },
	"zstd":        func(w io.Writer) flusher { z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return z },
}

// encode applies codings in order.
func encode(body string, codings ...string) []byte {
	data := []byte(body)
	for _, c := range codings {
		var b bytes.Buffer
		w := encoders[c](&b)
		w.Write(data)
		w.Close()
		data = b.Bytes()
	}
	return data
}

func named(coding string) string { return strings.TrimPrefix(coding, "raw ") }

func decode(r io.Reader, contentEncoding ...string) (string, error) {
	d, err := NewReader(r, contentEncoding)
	if err != nil {
		return "", err
	}
	defer d.Close()
	data, err := io.ReadAll(d)
	return string(data), err
}

// varied returns text that compresses little.
func varied(n int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < n; x = x*1664525 + 1013904223 {
		b.WriteByte(byte(x >> 24))
	}
	return b.String()
}

func TestNewReader(t *testing.T) {
	const text = "User-agent: *\nDisallow: /private/\n"
	for _, test := range []struct {
		header  []string
		codings []string
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{"identity"}, nil},
		{[]string{" , identity,"}, nil},
		{[]string{"None"}, nil},
		{[]string{"UTF-8"}, nil},
		{[]string{"8bit", "binary"}, nil},
		{[]string{"utf-8, gzip, none"}, []string{"gzip"}},
		{[]string{"gzip"}, []string{"gzip"}},
		{[]string{"X-GZIP"}, []string{"gzip"}},
		{[]string{"  GZip "}, []string{"gzip"}},
		{[]string{"deflate"}, []string{"deflate"}},
		{[]string{"deflate"}, []string{"raw deflate"}},
		{[]string{"br"}, []string{"br"}},
		{[]string{"zstd"}, []string{"zstd"}},
		{[]string{"gzip, br"}, []string{"gzip", "br"}},
		{[]string{"br", "gzip"}, []string{"br", "gzip"}},
		{[]string{"gzip,identity, gzip", "zstd"}, []string{"gzip", "gzip", "zstd"}},
		{[]string{"deflate, zstd, br"}, []string{"raw deflate", "zstd", "br"}},
	} {
		for _, body := range []string{"", "x", text, varied(100_000)} {
			data := encode(body, test.codings...)
			for name, r := range map[string]io.Reader{
				"whole":       bytes.NewReader(data),
				"one byte":    iotest.OneByteReader(bytes.NewReader(data)),
				"data + EOF":  iotest.DataErrReader(bytes.NewReader(data)),
				"half a read": iotest.HalfReader(bytes.NewReader(data)),
			} {
				if got, err := decode(r, test.header...); err != nil || got != body {
					t.Errorf("%q, %d bytes, %s: got %d bytes, %v", test.header, len(body), name, len(got), err)
				}
			}
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, header := range [][]string{
		{"compress"}, {"gzip, sdch"}, {"gzip;q=1"}, {"g zip"}, {"*"}, {"aes128gcm"},
		{"gzip, gzip, gzip, gzip"}, {"br", "br", "br", "br"},
	} {
		if _, err := NewReader(strings.NewReader(""), header); !errors.Is(err, errUnknown) {
			t.Errorf("%q: got %v, want errUnknown", header, err)
		}
	}
}

// TestMembers checks that all members of a gzip stream are read, and that bytes behind the last one are ignored.
func TestMembers(t *testing.T) {
	two := append(encode("User-agent: *\n", "gzip"), encode("Disallow: /\n", "gzip")...)
	for _, excess := range []string{"", "\x00", "\n", "\x1f", "</html>", "\x1e\x8b and more than a header has", "\x00\x00\x1f\x8b\x08"} {
		for body, data := range map[string][]byte{"User-agent: *\nDisallow: /\n": two, "": encode("", "gzip")} {
			data = append(bytes.Clone(data), excess...)
			for name, r := range map[string]io.Reader{"whole": bytes.NewReader(data), "one byte": iotest.OneByteReader(bytes.NewReader(data))} {
				if got, err := decode(r, "gzip"); got != body || err != nil {
					t.Errorf("%q behind %q, %s: got %q, %v", excess, body, name, got, err)
				}
			}
		}
	}
	if got, err := decode(bytes.NewReader(two[:len(two)-1]), "gzip"); err == nil {
		t.Errorf("the second member is cut short: got %q and no error", got)
	}
}

// TestTruncated checks that an encoded body cut at any byte is an error.
func TestTruncated(t *testing.T) {
	body := varied(200)
	for coding := range encoders {
		data := encode(body, coding)
		for n := 1; n < len(data); n++ {
			if got, err := decode(bytes.NewReader(data[:n]), named(coding)); err == nil {
				t.Errorf("%s: %d of %d bytes: got %d bytes and no error", coding, n, len(data), len(got))
			}
		}
	}
}

func TestCorrupt(t *testing.T) {
	for coding := range encoders {
		for name, data := range map[string][]byte{
			"plain text": []byte("User-agent: *\nDisallow: /\n"),
			"noise":      []byte(varied(1000)),
			"ones":       bytes.Repeat([]byte{0xff}, 100),
		} {
			if got, err := decode(bytes.NewReader(data), named(coding)); err == nil {
				t.Errorf("%s: %s: got %q and no error", coding, name, got)
			}
		}
	}
	// These three have a checksum.
	for _, coding := range []string{"gzip", "deflate", "zstd"} {
		data := encode(varied(1000), coding)
		for i := 20; i < len(data); i += 17 {
			bad := bytes.Clone(data)
			bad[i] ^= 0x10
			if got, err := decode(bytes.NewReader(bad), coding); err == nil && got == varied(1000) {
				t.Errorf("%s: byte %d changed: no error", coding, i)
			}
		}
	}
}

// TestBomb checks that a caller that reads a little of a large body causes little
// work.
func TestBomb(t *testing.T) {
	for coding := range encoders {
		var b bytes.Buffer
		w := encoders[coding](&b)
		w.Write(make([]byte, 4<<20))
		w.Close()
		counted := &counter{r: bytes.NewReader(encode(b.String(), "gzip"))}
		d, err := NewReader(counted, []string{named(coding), "gzip"})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, io.LimitReader(d, 1<<20))
		if n != 1<<20 || err != nil {
			t.Errorf("%s: got %d bytes, %v", coding, n, err)
		}
		if counted.n > 32<<10 {
			t.Errorf("%s: %d bytes were read for a mebibyte of a bomb", coding, counted.n)
		}
		d.Close()
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestZstdWindow checks that a frame with a window beyond the recommended size is
// refused (RFC 8878, 3.1.1.1.2).
func TestZstdWindow(t *testing.T) {
	header := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 31 << 3} // a window of 2^41 bytes
	if _, err := decode(bytes.NewReader(append(header, 1, 0, 0)), "zstd"); err == nil {
		t.Error("no error")
	}
}

// TestPrompt checks that flushed bytes are returned without waiting for more.
func TestPrompt(t *testing.T) {
	for coding := range encoders {
		t.Run(coding, func(t *testing.T) {
			r, w := io.Pipe()
			defer r.Close()
			d, err := NewReader(r, []string{named(coding)})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			e := encoders[coding](w)
			step := make(chan struct{})
			go func() {
				for _, part := range []string{"first part", "second part"} {
					io.WriteString(e, part)
					e.Flush()
					if _, ok := <-step; !ok { // until the reader has seen it
						return
					}
				}
				e.Close()
				w.Close()
			}()
			for _, want := range []string{"first part", "second part"} {
				got := make([]byte, len(want))
				if _, err := io.ReadFull(d, got); err != nil || string(got) != want {
					t.Fatalf("got %q, %v, want %q", got, err, want)
				}
				step <- struct{}{}
			}
			if rest, err := io.ReadAll(d); len(rest) > 0 || err != nil {
				t.Errorf("at the end: got %q, %v", rest, err)
			}
		})
	}
}
