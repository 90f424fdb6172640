package wire

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
	"robotsgate/internal/record"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A wireRow is one thing that a client or an origin may put on the wire, and
// what must come of it. It is run over each transport: in clear, in HTTP/1.1
// inside a tunnel's TLS, and in HTTP/2 there. The tables are in the other
// files, and in testdata.
//
// Behind every request comes an innocuous one, for /next: sent together with it
// in HTTP/1, on the next stream in HTTP/2. It must be answered as what it is,
// unless the connection is closed, and must never reach an origin as anything else.
//
// ORIGIN stands for the row's own host, to which no other row sends requests.
type wireRow struct {
	name string

	// The request, from which the three transports make theirs.
	method    string // default: GET
	authority string // of the URL, Host and :authority; default: ORIGIN
	path      string // default: /ok
	version   string // default: HTTP/1.1
	fields    string // lines, each with its CRLF
	body      string // with a Content-Length, unless fields frame it
	waits     bool   // the body is not sent before a 100

	connect string // target of the CONNECT; default: ORIGIN:443
	sni     string // default: ORIGIN; "-" is none

	// raw is a request that the template can't make, for HTTP/1. TARGET is
	// http://ORIGIN in clear and nothing inside a tunnel.
	raw string
	// h2 are the lines of a request that the template can't make, for HTTP/2.
	h2 string

	noClear, noTunnel, noHTTP2 string // why there is no such thing

	reply wireReply // the origin's; default: 200 with a short text

	expect
	inClear, inTunnel, inHTTP2 *expect // where it differs
}

// An expect says what comes of a row.
type expect struct {
	want   int  // status; broken: none, the connection or the stream ends
	orNone bool // or the connection or the stream may end before the answer, or in it
	// arrives is what the origin receives, from the request line, without
	// version and Host, to the body, without its chunks: "GET /", or
	// "POST /\r\nContent-Length: 1\r\n\r\nx". Nothing arrives where it is empty.
	// Over HTTP/1 the "Connection: close" of a request with a body is added, see closing.
	arrives string
	host    string // that the origin reads; default: ORIGIN
	half    bool   // the origin may see the beginning of a request, which breaks off

	closes bool // the client's connection ends behind the answer; HTTP/2's goes on
	either bool // it may end or not
	next   int  // status of what comes behind; default: 200

	// The origin sends more than its answer. Transport closes the connection when it
	// sees that before it has sent the next request; else that is answered with it.
	stray bool

	content string // of the answer, if not empty
	cut     bool   // the answer breaks off, visibly
	has     string // lines of the answer's head or trailer, without spaces at the ends
	lacks   string // names of fields that are in neither, separated by spaces
	informs []int  // the 1xx before it
}

// broken is the want of a row without an answer; reset that of an HTTP/2 stream
// that is malformed (RFC 9113, 8.1.1).
const broken = 0

var reset = &expect{want: broken}

const (
	noChunks  = "HTTP/2 has no chunked coding"
	noLines   = "HTTP/2 has no lines"
	noVersion = "HTTP/2 has no version in its requests"
	noTunnel  = "there is no tunnel to disagree with"
)

// wire is the gate between clients and origins that all speak bytes.
type wire struct {
	*proxytest.Gate
	origins  *wireOrigins
	sessions tls.ClientSessionCache // of clients: most handshakes are short
}

// newWire starts origins that take requests in TLS over HTTP/2 if http2 says so, and a gate in front of them.
func newWire(t *testing.T, http2 bool) *wire {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	origins := &wireOrigins{leaf: authority.Leaf, http2: http2, replies: map[string]wireReply{}, half: map[string]bool{}, arrived: map[string][]string{}}
	socks := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) { origins.serve(conn) })
	g := proxytest.Start(t, proxytest.Options{
		Egress: func(e *proxy.Egress) {
			e.Roots, e.Parent = roots, &url.URL{Scheme: "socks5", Host: socks.Host}
		},
		Proxy: func(o *proxy.Options) { o.Done = func(*record.Record) {} },
	})
	return &wire{g, origins, tls.NewLRUClientSessionCache(100)}
}

// tame reports whether a row leaves its origin as it was, for the next row: what
// is known of it, and connections to it, save half the time.
func (row wireRow) tame() bool {
	for _, e := range []*expect{&row.expect, row.inClear, row.inTunnel, row.inHTTP2} {
		if e != nil && e.half {
			return false
		}
	}
	return row.reply == wireReply{}
}

// runWire runs a table. The rows share a gate, but no origin at the same time.
func runWire(t *testing.T, rows []wireRow) {
	newWire(t, false).runAll(t, rows)
}

func (w *wire) runAll(t *testing.T, rows []wireRow) {
	usual := make(chan string, 8) // origins, each for one row at a time
	for i := range cap(usual) {
		usual <- fmt.Sprintf("usual%d.example", i)
	}
	t.Run("rows", func(t *testing.T) { // ends when all of them have
		for i, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				origin := fmt.Sprintf("row%d.example", i)
				if row.tame() {
					origin = <-usual
					defer func() { usual <- origin }()
				}
				w.run(t, row, origin)
			})
		}
	})
	late := slices.DeleteFunc(w.origins.rest(), isNext) // see check
	if len(late) > 0 {
		t.Errorf("reached an origin that nobody asked for, or late: %q", late)
	}
}

func (w *wire) run(t *testing.T, row wireRow, origin string) {
	for _, v := range []struct {
		name, none string
		differs    *expect
		send       func(*testing.T, wireRow, *strings.Replacer) (first, second clientView)
	}{
		{"clear", row.noClear, row.inClear, w.inClear},
		{"tunnel", row.noTunnel, row.inTunnel, w.inTunnel},
		{"HTTP/2", row.noHTTP2, row.inHTTP2, w.inHTTP2},
	} {
		if v.none != "" || v.name == "clear" && w.origins.http2 {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			e := row.expect
			if v.differs != nil {
				e = *v.differs
			}
			if !w.origins.http2 {
				e.arrives = closing(e.arrives)
			}
			w.origins.answer(origin, row.reply, e.half)
			target := ""
			if v.name == "clear" {
				target = "http://" + origin
			}
			names := strings.NewReplacer("ORIGIN", origin, "SHOUTED", strings.ToUpper(origin), "TARGET", target)
			first, second := v.send(t, row, names)
			if v.name == "HTTP/2" && v.differs == nil {
				e.closes, e.either = false, false // a stream's end is not its connection's
			}
			e.check(t, first, second, w.origins.take(origin), strings.TrimSuffix(strings.ToLower(names.Replace(row.next())), "."), names)
		})
	}
}

// isNext reports whether a request is the one behind that of a row.
func isNext(request string) bool { return strings.HasPrefix(request, "GET /next ") }

// check holds the answers, and what reached the origin, against what is expected.
func (e *expect) check(t *testing.T, first, second clientView, arrived []string, next string, names *strings.Replacer) {
	t.Helper()
	if first.status != e.want && !(e.orNone && first.status == broken) {
		t.Errorf("answered %v, want %d", first, e.want)
	}
	if cut := first.cut != nil; cut != e.cut && first.status != broken && (e.cut || !e.orNone) {
		t.Errorf("the answer breaks off with %v, want that: %v", first.cut, e.cut)
	}
	if e.content != "" && first.body != e.content {
		t.Errorf("the answer is %.300q, want %q", first.body, e.content)
	}
	for line := range strings.Lines(e.has) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if got := strings.Join(append(first.header.Values(name), first.trailer.Values(name)...), " | "); !strings.HasPrefix(got, names.Replace(value)) || got == "" {
			t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
	for name := range strings.FieldsSeq(e.lacks) {
		if got := append(first.header.Values(name), first.trailer.Values(name)...); len(got) > 0 {
			t.Errorf("%s: got %q, want none", name, got)
		}
	}
	if d := first.header.Values("Robots-Gate-Decision"); len(d) > 0 && e.arrives == "" && !e.half && e.want != 403 {
		t.Errorf("was decided: %s", d) // though it was not understood
	}
	if !slices.Equal(first.informed, e.informs) {
		t.Errorf("informed with %d, want %d", first.informed, e.informs)
	}

	if status := cmp.Or(e.next, 200); !e.stray && second.status != broken && (second.status != status || status == 200 && second.body != "next") {
		t.Errorf("the request behind it was answered %v", second)
	}
	if ends := second.status == broken; ends != e.closes && !e.either {
		t.Errorf("the connection is closed: %v, want %v", ends, e.closes)
	}

	want := []string{}
	if e.arrives != "" {
		host := names.Replace(e.host)
		if host == "" {
			host = names.Replace("ORIGIN")
		}
		line, rest, ok := strings.Cut(names.Replace(e.arrives), "\r\n")
		if !ok {
			rest = "\r\n"
		}
		want = append(want, line+" HTTP/1.1\r\nHost: "+host+"\r\n"+rest)
	}
	if e.stray { // the next request may arrive behind its stray answer, also when the next variant has begun
		arrived = slices.DeleteFunc(arrived, isNext)
	} else if second.status == 200 {
		want = append(want, "GET /next HTTP/1.1\r\nHost: "+next+"\r\n\r\n")
	}
	slices.Sort(want) // over HTTP/2 either may come first
	slices.Sort(arrived)
	if !slices.Equal(arrived, want) {
		t.Errorf("the origin received\n%q, want\n%q", arrived, want)
	}
}

// closing adds "Connection: close" to a request with a body. TestBodyIsNoRequest says why.
func closing(arrives string) string {
	line, fields, _ := strings.Cut(arrives, "\r\n")
	head, _, _ := strings.Cut("\r\n"+fields, "\r\n\r\n")
	_, length, _ := strings.Cut(head, "\r\nContent-Length: ")
	if length != "" && length[0] != '0' || strings.Contains(head, "\r\nTransfer-Encoding: ") {
		return line + "\r\nConnection: close\r\n" + fields
	}
	return arrives
}

// A clientView is what a client reads in return for a request.
type clientView struct {
	status          int // broken: none
	informed        []int
	header, trailer http.Header
	body            string
	cut             error // why it is not complete
}

func (a clientView) String() string {
	return fmt.Sprintf("%d %v %.200q %v", a.status, a.header, a.body, a.cut)
}

func (w *wire) inClear(t *testing.T, row wireRow, names *strings.Replacer) (first, second clientView) {
	conn := w.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	return speakHTTP1(t, conn, row, names, "http://")
}

func (w *wire) inTunnel(t *testing.T, row wireRow, names *strings.Replacer) (first, second clientView) {
	conn := w.handshake(t, row, names, "http/1.1")
	defer conn.Close()
	return speakHTTP1(t, conn, row, names, "")
}

func (w *wire) inHTTP2(t *testing.T, row wireRow, names *strings.Replacer) (first, second clientView) {
	conn := w.handshake(t, row, names, "h2")
	defer conn.Close()
	return speakHTTP2(t, conn, row, names)
}

// handshake opens a tunnel, and TLS in it.
func (w *wire) handshake(t *testing.T, row wireRow, names *strings.Replacer, protocol string) net.Conn {
	t.Helper()
	connect, sni := cmp.Or(row.connect, "ORIGIN:443"), cmp.Or(row.sni, "ORIGIN")
	tunnel := w.Tunnel(names.Replace(connect))
	tunnel.SetDeadline(time.Now().Add(proxytest.Patience))
	config := &tls.Config{RootCAs: w.Roots, ServerName: names.Replace(sni), NextProtos: []string{protocol}, ClientSessionCache: w.sessions}
	if sni == "-" {
		config.ServerName, config.InsecureSkipVerify = "", true // else Go sends one
	}
	conn := tls.Client(tunnel, config)
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	return conn
}
