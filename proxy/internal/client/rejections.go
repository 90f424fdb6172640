package client

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/logtext"
)

// maxNamed bounds the names that are kept between two lines of the log.
const maxNamed = 100

// Rejections count what was rejected for one reason, by the name of a client or a crawler.
type Rejections struct {
	total  int64
	unsaid map[string]int // since the last line
	logged logtext.Minute
}

// Total returns how many there were. A nil Rejections has none.
func (r *Rejections) Total() int64 {
	if r == nil {
		return 0
	}
	return r.total
}

// Add counts one. Once a minute it returns the names since the last time, with the counts, the
// most frequent ones first.
func (r *Rejections) Add(name string) (names []string) {
	r.total++
	if r.unsaid == nil {
		r.unsaid = map[string]int{}
	}
	if _, known := r.unsaid[name]; !known && len(r.unsaid) >= maxNamed {
		name = "others"
	}
	r.unsaid[name]++
	if r.logged.Add() == 0 {
		return nil
	}
	names = slices.SortedFunc(maps.Keys(r.unsaid), func(a, b string) int {
		return cmp.Or(r.unsaid[b]-r.unsaid[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, r.unsaid[name])
	}
	clear(r.unsaid)
	return names[:min(len(names), 5)]
}

// overLimit is the response to a client over a limit on connections.
const overLimit = "HTTP/1.1 503 Too many connections\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n" +
	"Retry-After: 1\r\nConnection: close\r\n\r\nrobotsgate: too many open connections.\r\n"

// maxRejecting bounds the connections to which the response is being sent.
const maxRejecting = 100

// rejectOverLimit answers a client over a limit, and closes the connection. It first waits a
// moment for the request: some clients do not expect a response before they have sent one, and
// to close a connection with unread data can destroy the response (RFC 9112, section 9.6).
func rejectOverLimit(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 4<<10)
	if n, _ := conn.Read(buf); n > 0 && (buf[0] == recordTypeHandshake || buf[0] == socks5) {
		return // in TLS or SOCKS, a response in clear would look like a broken server
	}
	if _, err := io.WriteString(conn, overLimit); err != nil {
		return
	}
	_ = CloseWrite(conn)
	for range 16 { // the rest of the request
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}
