package wire

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/proxytest"
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
	leaf  func(host string) (*tls.Certificate, error)
	http2 bool // where there is TLS

	mu      sync.Mutex
	replies map[string]wireReply
	half    map[string]bool     // hosts whose requests may break off
	arrived map[string][]string // by host
}

// answer sets what an origin replies, and whether requests to it may break off.
func (o *wireOrigins) answer(host string, r wireReply, half bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replies[host], o.half[host] = r, half
}

func (o *wireOrigins) mayBreakOff(host string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.half[host]
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

// rest returns the requests that no row has taken.
func (o *wireOrigins) rest() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(o.arrived))...)
}

func (o *wireOrigins) serve(conn net.Conn) {
	defer conn.Close()
	address, err := acceptSocks(conn)
	if err != nil {
		return
	}
	host, port, _ := net.SplitHostPort(address)
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return
	}
	conn = client.NewPrefixed(conn, first[:])
	if secure := first[0] == 0x16; secure != (port == "443") {
		o.note(host, fmt.Sprintf("port %s, TLS: %v", port, secure))
		return
	}
	if port == "443" {
		config := &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if _, err := netip.ParseAddr(host); err != nil && hello.ServerName != host {
				o.note(host, "the server name "+hello.ServerName)
			}
			return o.leaf(host)
		}}
		if o.http2 {
			config.NextProtos = []string{"h2"}
		}
		s := tls.Server(conn, config)
		if s.Handshake() != nil {
			return
		}
		if o.http2 {
			//lint:ignore SA1019 net/http can't be handed a connection
			new(http2.Server).ServeConn(s, &http2.ServeConnOpts{Handler: o.handler(host)})
			return
		}
		conn = s
	}
	o.speak(conn, host, strings.TrimSuffix(strings.TrimSuffix(address, ":80"), ":443"))
}

// acceptSocks reads where a client of a SOCKS proxy wants to go.
func acceptSocks(conn net.Conn) (address string, err error) {
	client.ReadSocksGreeting(conn)
	conn.Write(client.SocksChoice(client.NoLogin))
	to, _, _, err := client.ReadSocksRequest(conn)
	conn.Write(client.SocksReply(client.SocksSucceeded))
	return net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), err
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
		o.mu.Unlock()
		request, err := readStrictly(conn, r, authority, out.early)
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) || !o.mayBreakOff(host) {
				o.note(host, fmt.Sprintf("%q, which is malformed: %v", request, err))
			}
			return
		}
		line, _, _ := strings.Cut(request, "\r\n")
		method, target, _ := strings.Cut(strings.TrimSuffix(line, " HTTP/1.1"), " ")
		content := "hello"
		switch target {
		case "/robots.txt":
			content, out = proxytest.ExampleRobots, wireReply{}
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

// handler serves HTTP/2 for a host. It writes requests down as they would have
// come in HTTP/1.1.
func (o *wireOrigins) handler(host string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(rw, proxytest.ExampleRobots)
			return
		}
		var lines bytes.Buffer
		fmt.Fprintf(&lines, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.RequestURI, r.Host)
		for _, name := range []string{"User-Agent", "Content-Length"} { // which net/http sends first
			for _, value := range r.Header[name] {
				fmt.Fprintf(&lines, "%s: %s\r\n", name, value)
			}
			r.Header.Del(name)
		}
		if r.ContentLength < 0 {
			lines.WriteString("Transfer-Encoding: chunked\r\n")
		}
		r.Header.Write(&lines)
		lines.WriteString("\r\n")
		if _, err := io.Copy(&lines, r.Body); err == nil || !o.mayBreakOff(host) {
			o.note(host, lines.String())
		}
		io.WriteString(rw, map[bool]string{true: "next", false: "hello"}[r.URL.Path == "/next"])
	})
}

// send reports whether the connection goes on.
func (o *wireOrigins) send(conn net.Conn, host string, out wireReply) bool {
	if _, err := io.WriteString(conn, out.bytes); err != nil {
		return false
	}
	if out.flood != "" {
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		block := strings.Repeat(out.flood, 1+(4<<10)/len(out.flood))
		for sent := 0; ; sent += len(block) {
			if _, err := io.WriteString(conn, block); err != nil {
				if proxytest.IsTimeout(err) {
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
