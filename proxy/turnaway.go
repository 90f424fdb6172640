package proxy

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"robotsgate/proxy/internal/netconn"
)

// full is what a client reads when there is no room for it.
const full = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n" +
	"Retry-After: 1\r\nConnection: close\r\n\r\nrobotsgate: too many open connections.\r\n"

// maxTurning bounds the clients that are being told that there is no room.
const maxTurning = 100

// turnAway answers a client that there is no room for. It waits a moment for the
// request, since closing a connection with something unread in it takes the answer
// back (RFC 9112, 9.6), and many clients are puzzled by one that comes unasked.
func turnAway(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 4<<10)
	if n, _ := conn.Read(buf); n > 0 && buf[0] == recordTypeHandshake {
		return // it would take words in clear for a broken TLS
	}
	if _, err := io.WriteString(conn, full); err != nil {
		return
	}
	_ = netconn.CloseWrite(conn)
	for range 16 { // what more of the request comes, within the second
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

// A limit on connections, by the key of the configuration that sets it.
type limit string

const (
	limitTotal   limit = "limits.max_connections"
	limitClient  limit = "limits.max_connections_per_client"
	limitCrawler limit = "crawlers[].max_connections"
)

// maxNamed bounds who is remembered by name between two lines of the log.
const maxNamed = 100

// turned is who has been turned away at one limit.
type turned struct {
	total int64          // since the start
	since map[string]int // how often each was, since it was last said
	said  time.Time
}

// add counts one. Once a minute it returns who they were since, those turned away
// most often first.
func (t *turned) add(who string, now time.Time) (names []string) {
	t.total++
	if t.since == nil {
		t.since = map[string]int{}
	}
	if _, known := t.since[who]; !known && len(t.since) >= maxNamed {
		who = "others"
	}
	t.since[who]++
	if now.Sub(t.said) < time.Minute {
		return nil
	}
	t.said = now
	for who := range t.since {
		names = append(names, who)
	}
	slices.SortFunc(names, func(a, b string) int {
		if n := t.since[b] - t.since[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for i, who := range names {
		names[i] = fmt.Sprintf("%s (%d)", who, t.since[who])
	}
	clear(t.since)
	return names[:min(len(names), 5)]
}
