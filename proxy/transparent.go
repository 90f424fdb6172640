package proxy

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/netconn"
)

// ServeTransparent accepts connections from l that the network has redirected to the gate, and serves them until Shutdown,
// when it returns nil. It returns an error of Accept that is not temporary. The LocalAddr of an accepted connection is the
// destination that the client has chosen. Only its port is used: the client names the host in the TLS server name or in
// Host. A connection with a method Redirected() bool is refused if that returns false.
func (p *Proxy) ServeTransparent(l net.Listener) error {
	accepted := p.listener(l)
	if !p.redirected.begin(l) {
		l.Close()
		return nil
	}
	p.serveTunnels()
	for delay := time.Duration(0); ; {
		conn, err := accepted.Accept()
		switch temporary, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); {
		case err == nil:
			delay = 0
			go p.serveRedirected(conn.(*client.Conn))
			continue
		case p.redirected.ended():
			return nil
		case !ok || !temporary.Temporary():
			return err
		}
		// As net/http does: the process is out of file descriptors, say.
		delay = min(max(5*time.Millisecond, 2*delay), time.Second)
		p.redirected.sleep(delay)
	}
}

// serveRedirected serves a connection that was redirected to the gate.
func (p *Proxy) serveRedirected(c *client.Conn) {
	p.silent.add(c)
	defer p.silent.remove(c)
	defer func() {
		if cause := recover(); cause != nil {
			c.Close()
			if !isAbort(cause) {
				p.Log.Error("panic while serving a connection; please report it", "panic", cause, "stack", string(debug.Stack()))
			}
		}
	}()
	port, ok := originalPort(c)
	if !ok {
		p.refuseRedirected(c, NotRedirected)
		return
	}
	_ = c.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
	rd := bufio.NewReaderSize(c, maxFirstLine)
	first, err := rd.Peek(1)
	switch {
	case p.Descriptors.d.Dialled(c.RemoteAddr(), c.LocalAddr()): // by now that is known: the dialler has sent something
		p.refuseRedirected(c, IsOwn)
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		c.Close() // it has sent nothing: a probe of the port, say
	case err != nil:
		p.refuseRedirected(c, Incomplete)
	case client.IsTLS(first[0]):
		p.redirectedTLS(c, netconn.Buffered(c, rd), port)
	default:
		p.redirectedClear(c, rd, port)
	}
}

// originalPort returns the port that the client has connected to. ok is false if the connection was not redirected.
func originalPort(c *client.Conn) (port string, ok bool) {
	if under := c.Buffer(); under != nil {
		if r, can := under.NetConn().(interface{ Redirected() bool }); can && !r.Redirected() {
			return "", false
		}
	}
	a, err := netip.ParseAddrPort(c.LocalAddr().String())
	return strconv.Itoa(int(a.Port())), err == nil && a.Port() != 0
}

// redirectedTLS serves a connection that begins with TLS, as if the client had sent a CONNECT to the server name.
func (p *Proxy) redirectedTLS(c *client.Conn, conn net.Conn, port string) {
	hello, err := client.ReadHello(conn, c.Memory)
	switch {
	case errors.Is(err, client.ErrNotHello), errors.Is(err, client.ErrLongHello):
		p.refuseRedirected(c, BadHello)
		return
	case err != nil:
		p.refuseRedirected(c, Incomplete)
		return
	}
	defer hello.Release()
	if hello.ServerName == "" {
		p.refuseRedirected(c, NoName)
		return
	}
	target, err := canonical.ParseTarget("https", hello.ServerName+":"+port, "/")
	if _, aerr := netip.ParseAddr(target.Hostname()); err != nil || aerr == nil { // an address is no server name (RFC 6066, 3)
		p.refuseRedirected(c, BadName)
		return
	}
	p.redirected.serve()
	p.open.add(c) // Shutdown waits for the decision
	defer p.open.remove(c)
	p.silent.remove(c) // intercept adds it again
	ctx := context.WithValue(c.Disconnect.ConnContext(context.Background()), connectionKey{}, &connection{client: c, redirected: true})
	r := (&http.Request{
		Method: http.MethodConnect, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody,
		Host: target.Address(), RequestURI: target.Address(), RemoteAddr: c.RemoteAddr().String(),
	}).WithContext(ctx)
	w := &unansweredWriter{header: http.Header{}, conn: netconn.NewPrefixed(c, hello.Read)}
	p.openTunnel(&opening{w, r, p.settings.Load(), target, port})
	if !w.taken {
		sendAlert(c, alertAccessDenied)
		c.Close()
	}
}

// redirectedClear passes a connection to the inner server. Each of its requests names its host.
func (p *Proxy) redirectedClear(c *client.Conn, rd *bufio.Reader, port string) {
	if refused := readFirstLine(rd); refused != "" {
		p.refuseRedirected(c, refused)
		return
	}
	p.redirected.serve()
	_ = c.SetDeadline(time.Time{})
	p.silent.remove(c) // its first request may be there before we have returned
	p.tunnels.Deliver(&tunnel{Conn: netconn.Buffered(c, rd), port: port, client: c, disconnect: c.Disconnect})
}

// maxFirstLine is how much is read to recognise a request line, in bytes. A longer line is left to net/http.
const maxFirstLine = 4 << 10

// readFirstLine reads a line and returns why the connection is refused; "" if the line may begin a request of HTTP/1.
// net/http reads it again: only that decides what the request is.
func readFirstLine(rd *bufio.Reader) (refused RedirectRefusal) {
	for more := error(nil); ; _, more = rd.Peek(rd.Buffered() + 1) {
		have, _ := rd.Peek(rd.Buffered())
		method, rest, spaced := bytes.Cut(have, []byte(" "))
		if !isToken(method) {
			return NotHTTP
		}
		line, _, ended := bytes.Cut(rest, []byte("\n"))
		switch line = bytes.TrimSuffix(line, []byte("\r")); {
		case ended && bytes.HasSuffix(line, []byte(" HTTP/2.0")):
			return ClearHTTP2 // its preface (RFC 9113, 3.4)
		case ended && !bytes.HasSuffix(line, []byte(" HTTP/1.1")) && !bytes.HasSuffix(line, []byte(" HTTP/1.0")):
			return NotHTTP
		case ended, errors.Is(more, bufio.ErrBufferFull) && spaced:
			return ""
		case errors.Is(more, bufio.ErrBufferFull):
			return NotHTTP
		case more != nil:
			return Incomplete
		}
	}
}

// isToken reports whether a method consists of the characters of a token (RFC 9110, 5.6.2), as far as it has been read.
func isToken(method []byte) bool {
	return len(method) > 0 && bytes.IndexFunc(method, func(c rune) bool { return !httpguts.IsTokenRune(c) }) < 0
}

// Alerts that say why a connection is closed (RFC 8446, section 6.2).
const (
	alertAccessDenied     = 49
	alertMissingExtension = 109
	alertUnrecognizedName = 112
)

// sendAlert sends a fatal alert in answer to a ClientHello.
func sendAlert(c net.Conn, alert byte) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte{tlsAlert, 3, 3, 0, 2, 2, alert}) // the client may have gone
}

const tlsAlert = 0x15 // RFC 8446, section 5.1

// An unansweredWriter is the ResponseWriter for the CONNECT that a redirected client has not sent. It discards what is
// written: the client must not receive an answer to it.
type unansweredWriter struct {
	header http.Header
	conn   net.Conn
	taken  bool
}

func (w *unansweredWriter) Header() http.Header         { return w.header }
func (w *unansweredWriter) WriteHeader(int)             {}
func (w *unansweredWriter) Write(p []byte) (int, error) { return len(p), nil }

// Hijack is for http.ResponseController.
func (w *unansweredWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.taken = true
	return w.conn, bufio.NewReadWriter(bufio.NewReaderSize(w.conn, 16), nil), nil
}

// serveInRedirected serves a request of a connection that was redirected. The server name, if there is one, Host and
// the port that the client has connected to must name one origin.
func (p *Proxy) serveInRedirected(w http.ResponseWriter, r *http.Request, t *tunnel, scheme string) {
	target, refused := redirectedTarget(r, t, scheme)
	if refused == nil && target.Hostname() == ownName {
		p.serveOwn(w, r)
		return
	}
	p.serve(w, r, p.settings.Load(), target, refused)
}

func redirectedTarget(r *http.Request, t *tunnel, scheme string) (canonical.Target, *problem) {
	if !strings.HasPrefix(r.RequestURI, "/") {
		return canonical.Target{}, checkRequest(r, errors.New("the request is one for a proxy, and its connection was redirected to the gate; "+
			"give the client the gate's own address as its proxy, or none"))
	}
	host := r.Host
	if t.authority != "" && !r.ProtoAtLeast(1, 1) {
		host = cmp.Or(host, t.authority) // HTTP/1.0 need not send Host, and TLS has named it
	}
	if host == "" {
		return canonical.Target{}, checkRequest(r, errors.New("it has no Host, so it does not say which origin it is for"))
	}
	name, port := canonical.SplitPort(host)
	target, err := canonical.ParseTarget(scheme, name+":"+cmp.Or(port, t.port), r.RequestURI)
	if refused := checkRequest(r, err); refused != nil {
		return target, refused
	}
	_, port, _ = net.SplitHostPort(target.Address())
	switch {
	case port != t.port:
		return target, misdirected("The client has connected to port " + t.port + ", and Host names another one.")
	case r.TLS != nil && (target.Origin() != t.secure || !t.names(r.TLS.ServerName)),
		slices.ContainsFunc(r.Header["Host"], func(host string) bool { return host != r.Host }): // see serveInner
		return target, misdirected("The TLS server name, Host and :authority do not name the same host.")
	}
	return target, nil
}

// alertFor returns the alert that says why a connection is refused.
func alertFor(refused RedirectRefusal) (alert byte, ok bool) {
	switch refused {
	case NoName:
		return alertMissingExtension, true
	case BadName:
		return alertUnrecognizedName, true
	}
	return 0, false
}
