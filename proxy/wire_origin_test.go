package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A wireReply is an origin's to every request but those for robots.txt and /next.
type wireReply struct {
	bytes string
	flood string // comes after bytes, again and again
	close bool   // and then the connection ends
	early bool   // nothing is read of the request's body, nor asked for
}

// maxFlood is what a gate may take in of a flood: its own bound, and what the
// kernel keeps for sockets.
const maxFlood = 32 << 20

// wireOrigins are all origins that there are: they stand where the gate expects
// a SOCKS proxy (RFC 1928), so that every name and port leads to them. They read
// requests as strictly as one can, and write them down.
type wireOrigins struct {
	listener net.Listener
	leaf     func(host string) (*tls.Certificate, error)

	mu      sync.Mutex
	conns   map[net.Conn]bool
	replies map[string]wireReply
	half    map[string]bool     // hosts whose requests may break off
	arrived map[string][]string // by host
}

func startWireOrigins(t *testing.T, leaf func(string) (*tls.Certificate, error)) *wireOrigins {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &wireOrigins{listener: l, leaf: leaf, conns: map[net.Conn]bool{}, replies: map[string]wireReply{}, half: map[string]bool{}, arrived: map[string][]string{}}
	var all sync.WaitGroup
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			o.mu.Lock()
			o.conns[conn] = true
			o.mu.Unlock()
			all.Go(func() { o.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		o.mu.Lock()
		for conn := range o.conns {
			conn.Close()
		}
		o.mu.Unlock()
		all.Wait()
	})
	return o
}

// answer sets what an origin replies, and whether requests to it may break off.
func (o *wireOrigins) answer(host string, r wireReply, half bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replies[host], o.half[host] = r, half
}

// note writes down what has reached an origin.
func (o *wireOrigins) note(host, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arrived[host] = append(o.arrived[host], what)
}

// take returns what has reached an origin, or one below it, since the last time.
func (o *wireOrigins) take(host string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := []string{}
	for name, arrived := range o.arrived {
		if name == host || strings.HasSuffix(name, "."+host) {
			all = append(all, arrived...)
			delete(o.arrived, name)
		}
	}
	return all
}

// rest returns what nobody has taken.
func (o *wireOrigins) rest() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(o.arrived))...)
}

func (o *wireOrigins) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.conns, conn)
	}()
	address, err := acceptSocks(conn)
	if err != nil {
		return
	}
	host, port, _ := net.SplitHostPort(address)
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return
	}
	conn = &replay{Conn: conn, first: first[:]}
	if secure := first[0] == recordTypeHandshake; secure != (port == "443") {
		o.note(host, fmt.Sprintf("port %s, TLS: %v", port, secure))
		return
	}
	if port == "443" {
		s := tls.Server(conn, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if _, err := netip.ParseAddr(host); err != nil && hello.ServerName != host {
				o.note(host, "the server name "+hello.ServerName)
			}
			return o.leaf(host)
		}})
		if s.Handshake() != nil {
			return
		}
		conn = s
	}
	o.speak(conn, host, strings.TrimSuffix(strings.TrimSuffix(address, ":80"), ":443"))
}

// acceptSocks reads where a client of a SOCKS proxy wants to go.
func acceptSocks(conn net.Conn) (address string, err error) {
	read := func(n byte) []byte {
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(conn, b)
		}
		return b
	}
	read(read(2)[1]) // the methods that it offers
	conn.Write([]byte{5, 0})
	var host string
	switch read(4)[3] {
	case 1:
		host = net.IP(read(4)).String()
	case 3:
		host = string(read(read(1)[0]))
	case 4:
		host = net.IP(read(16)).String()
	}
	port := read(2)
	conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), err
}

// speak serves HTTP/1.1 for a host, whose Host header must read authority.
func (o *wireOrigins) speak(conn net.Conn, host, authority string) {
	r := bufio.NewReader(conn)
	for {
		if _, err := r.Peek(1); err != nil {
			return
		}
		o.mu.Lock()
		out := o.replies[host]
		half := o.half[host]
		o.mu.Unlock()
		request, err := readStrictly(conn, r, authority, out.early)
		if err != nil {
			if !half || !errors.Is(err, io.ErrUnexpectedEOF) {
				o.note(host, fmt.Sprintf("%q, which is malformed: %v", request, err))
			}
			return
		}
		line, _, _ := strings.Cut(request, "\r\n")
		method, target, _ := strings.Cut(strings.TrimSuffix(line, " HTTP/1.1"), " ")
		content := "hello"
		switch target {
		case "/robots.txt":
			content, out = exampleRobots, wireReply{}
		case "/next":
			content, out = "next", wireReply{}
			fallthrough
		default:
			o.note(host, request)
		}
		if out == (wireReply{}) {
			out.bytes = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(content))
			if method != "HEAD" {
				out.bytes += content
			}
		}
		if !o.send(conn, host, out) {
			return
		}
	}
}

// send reports whether the connection goes on.
func (o *wireOrigins) send(conn net.Conn, host string, out wireReply) bool {
	if _, err := io.WriteString(conn, out.bytes); err != nil {
		return false
	}
	if out.flood != "" {
		conn.SetDeadline(time.Now().Add(patience))
		block := strings.Repeat(out.flood, 1+(4<<10)/len(out.flood))
		for sent := 0; ; sent += len(block) {
			if _, err := io.WriteString(conn, block); err != nil {
				if isTimeout(err) {
					o.note(host, "a flood that nobody reads, on a connection that nobody closes")
				}
				return false
			}
			if sent > maxFlood {
				o.note(host, "a flood that the gate reads without end")
				return false
			}
		}
	}
	return !out.close
}

var (
	requestLine = regexp.MustCompile(`^[!-~]+ /[!-~]* HTTP/1\.1$`)
	fieldLine   = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\\x00-\\x20\\x7f]([^\\x00-\\x08\\x0a-\\x1f\\x7f]*[^\\x00-\\x20\\x7f])?)?$")
	chunkSize   = regexp.MustCompile(`^(0|[1-9a-f][0-9a-f]*)$`)
	plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

// readStrictly reads a request that is framed in the one way that nobody can
// misread, and returns it without the chunks of its body. To w it says that it
// wants the body, if asked.
func readStrictly(w io.Writer, r *bufio.Reader, authority string, headOnly bool) (request string, err error) {
	readLine := func() string {
		line, rerr := r.ReadString('\n')
		if !strings.HasSuffix(line, "\r\n") && err == nil {
			if err = fmt.Errorf("a line without CRLF: %q", line); rerr != nil {
				err = io.ErrUnexpectedEOF
			}
		}
		return strings.TrimSuffix(line, "\r\n")
	}
	line := readLine()
	request = line + "\r\n"
	if err == nil && !requestLine.MatchString(line) {
		err = errors.New("request line")
	}
	var hosts, framing []string
	for err == nil {
		line := readLine()
		request += line + "\r\n"
		if line == "" {
			break
		}
		m := fieldLine.FindStringSubmatch(line)
		if m == nil {
			err = fmt.Errorf("field line %q", line)
			break
		}
		switch strings.ToLower(m[1]) {
		case "host":
			hosts = append(hosts, m[2])
		case "content-length", "transfer-encoding":
			framing = append(framing, m[2])
		case "expect":
			if !headOnly {
				io.WriteString(w, "HTTP/1.1 100 Continue\r\n\r\n")
			}
		}
	}
	switch {
	case err != nil:
	case len(hosts) != 1 || hosts[0] != authority:
		err = fmt.Errorf("Host %q, at %s", hosts, authority)
	case len(framing) == 0, headOnly:
	case len(framing) == 1 && plainNumber.MatchString(framing[0]):
		n, _ := strconv.Atoi(framing[0])
		body := make([]byte, n)
		if _, rerr := io.ReadFull(r, body); rerr != nil {
			err = io.ErrUnexpectedEOF
		}
		request += string(body)
	case len(framing) == 1 && framing[0] == "chunked":
		for size := -1; size != 0 && err == nil; {
			line := readLine()
			if err == nil && !chunkSize.MatchString(line) {
				err = fmt.Errorf("chunk size %q", line)
				break
			}
			n, _ := strconv.ParseInt(line, 16, 32)
			size = int(n)
			chunk := make([]byte, size)
			if _, rerr := io.ReadFull(r, chunk); rerr != nil && err == nil {
				err = io.ErrUnexpectedEOF
			}
			request += string(chunk)
			if end := readLine(); err == nil && end != "" {
				err = fmt.Errorf("behind a chunk or as a trailer: %q", end)
			}
		}
	default:
		err = fmt.Errorf("framed by %q", framing)
	}
	return request, err
}
