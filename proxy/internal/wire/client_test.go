package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"robotsgate/proxy/internal/proxytest"
)

// speakHTTP1 sends a row's request and the one behind it, and reads the answers.
// The prefix makes a path of the row's authority absolute.
func speakHTTP1(t *testing.T, conn net.Conn, row wireRow, names *strings.Replacer, prefix string) (first, second clientView) {
	t.Helper()
	method := cmp.Or(row.method, http.MethodGet)
	if row.raw != "" {
		method, _, _ = strings.Cut(row.raw, " ")
	}
	head, body := names.Replace(row.head(method, prefix)), names.Replace(row.body)
	next := names.Replace("GET TARGET/next HTTP/1.1\r\nHost: " + row.next() + "\r\n\r\n")
	said := make(chan bool)
	go func() { // all of it at once, whether the gate reads it or not
		defer close(said)
		if row.waits {
			io.WriteString(conn, head)
			return
		}
		io.WriteString(conn, head+body+next)
	}()
	defer func() {
		conn.Close()
		<-said
	}()
	r := bufio.NewReader(conn)
	first = readHTTP1(t, r, method, func() {
		if row.waits {
			io.WriteString(conn, body+next)
		}
	})
	if first.status != broken && first.cut == nil {
		second = readHTTP1(t, r, http.MethodGet, nil)
	}
	return first, second
}

// head returns the row's request in HTTP/1, without its body.
func (row wireRow) head(method, prefix string) string {
	if row.raw != "" {
		return row.raw
	}
	target := cmp.Or(row.path, "/ok")
	authority := cmp.Or(row.authority, "ORIGIN")
	if prefix != "" {
		target = prefix + authority + target
	}
	return fmt.Sprintf("%s %s %s\r\nHost: %s\r\n%s\r\n", method, target, cmp.Or(row.version, "HTTP/1.1"), authority, row.framed())
}

// framed returns the row's fields, with a length for the body.
func (row wireRow) framed() string {
	lower := strings.ToLower(row.fields)
	if row.body == "" || strings.Contains(lower, "content-length") || strings.Contains(lower, "transfer-encoding") {
		return row.fields
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n", row.fields, len(row.body))
}

// next returns the host that the request behind the row's goes to: the tunnel's.
func (row wireRow) next() string {
	return strings.TrimSuffix(cmp.Or(row.connect, "ORIGIN"), ":443")
}

// readHTTP1 reads an answer with those that come before it; goOn is called when
// the client is told to.
func readHTTP1(t *testing.T, r *bufio.Reader, method string, goOn func()) (a clientView) {
	t.Helper()
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			a.cut = err
			if proxytest.IsTimeout(err) {
				t.Fatalf("neither answered nor closed within %v", proxytest.Patience)
			}
			return a
		}
		if resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
			a.informed = append(a.informed, resp.StatusCode)
			if resp.StatusCode == http.StatusContinue && goOn != nil {
				goOn()
			}
			continue
		}
		a.status, a.header = resp.StatusCode, resp.Header
		a.header["Transfer-Encoding"] = resp.TransferEncoding // which ReadResponse takes out
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return a
		}
		body, err := io.ReadAll(resp.Body)
		if proxytest.IsTimeout(err) {
			t.Fatalf("the answer does not end within %v", proxytest.Patience)
		}
		a.body, a.trailer, a.cut = string(body), resp.Trailer, err
		return a
	}
}

// speakHTTP2 does the same over HTTP/2, in frames of its own, since a library's
// client would not send what is malformed.
func speakHTTP2(t *testing.T, conn net.Conn, row wireRow, names *strings.Replacer) (first, second clientView) {
	t.Helper()
	c := newFrames(conn)
	io.WriteString(&c.out, http2.ClientPreface)
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 24})
	c.WriteWindowUpdate(0, 1<<24)
	c.request(1, names.Replace(row.lines()), row.body == "")
	if row.body != "" && !row.waits {
		c.WriteData(1, true, []byte(names.Replace(row.body)))
	}
	c.request(3, names.Replace(":method: GET\n:scheme: https\n:authority: "+row.next()+"\n:path: /next"), true)
	c.flush()
	streams := map[uint32]*clientView{1: &first, 3: &second}
	for ; len(streams) > 0; c.flush() {
		frame, err := c.ReadFrame()
		if err != nil {
			if proxytest.IsTimeout(err) {
				t.Fatalf("neither answered nor closed within %v", proxytest.Patience)
			}
			for _, a := range streams {
				a.cut = err
			}
			return first, second
		}
		stream := frame.Header().StreamID
		a := cmp.Or(streams[stream], &clientView{})
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			informed := len(a.informed)
			a.take(f)
			if row.waits && len(a.informed) > informed && a.informed[informed] == 100 {
				c.WriteData(1, true, []byte(names.Replace(row.body)))
			}
		case *http2.DataFrame:
			a.body += string(f.Data())
		case *http2.RSTStreamFrame:
			if f.ErrCode != http2.ErrCodeNo || a.status == broken { // else the rest of the request is not wanted
				a.cut = fmt.Errorf("the stream was reset: %v", f.ErrCode)
				delete(streams, stream)
			}
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) {
			delete(streams, stream)
		}
	}
	return first, second
}

// lines returns the row's request in HTTP/2: its fields as lines.
func (row wireRow) lines() string {
	if row.h2 != "" {
		return row.h2
	}
	var out strings.Builder
	fmt.Fprintf(&out, ":method: %s\n:scheme: https\n:authority: %s\n:path: %s\n", cmp.Or(row.method, "GET"), cmp.Or(row.authority, "ORIGIN"), cmp.Or(row.path, "/ok"))
	for line := range strings.SplitSeq(strings.TrimSuffix(row.framed(), "\r\n"), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		fmt.Fprintf(&out, "%s: %s\n", strings.ToLower(name), value)
	}
	return out.String()
}

// take adds a head, or a trailer.
func (a *clientView) take(f *http2.MetaHeadersFrame) {
	h := http.Header{}
	for _, field := range f.RegularFields() {
		h.Add(field.Name, field.Value)
	}
	var status int
	fmt.Sscan(f.PseudoValue("status"), &status)
	switch {
	case status/100 == 1:
		a.informed = append(a.informed, status)
	case a.status == 0:
		a.status, a.header = status, h
	default:
		a.trailer = h
	}
}

// frames writes and reads HTTP/2's.
type frames struct {
	*http2.Framer
	conn  net.Conn
	out   bytes.Buffer
	block bytes.Buffer
	hpack *hpack.Encoder
}

func newFrames(conn net.Conn) *frames {
	c := &frames{conn: conn}
	c.Framer = http2.NewFramer(&c.out, conn)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.AllowIllegalWrites = true
	c.hpack = hpack.NewEncoder(&c.block)
	return c
}

func (c *frames) flush() {
	c.conn.Write(c.out.Bytes()) // that it is gone is found out by reading
	c.out.Reset()
}

// request writes the head of a request from lines of fields, whose names may
// begin with a colon. An LF inside a field is written as its picture.
func (c *frames) request(stream uint32, lines string, end bool) {
	c.block.Reset()
	for line := range strings.SplitSeq(strings.Trim(lines, "\n"), "\n") {
		line = strings.ReplaceAll(line, "\u240a", "\n")
		if i := strings.Index(line[min(1, len(line)):], ": "); i >= 0 {
			c.hpack.WriteField(hpack.HeaderField{Name: line[:i+1], Value: line[i+3:]})
		}
	}
	const most = 16 << 10 // of a frame
	rest := c.block.Bytes()
	part := rest[:min(len(rest), most)]
	rest = rest[len(part):]
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: part, EndStream: end, EndHeaders: len(rest) == 0})
	for len(rest) > 0 {
		part, rest = rest[:min(len(rest), most)], rest[min(len(rest), most):]
		c.WriteContinuation(stream, len(rest) == 0, part)
	}
}
