package client

import (
	"log/slog"
	"sync/atomic"
)

// A ConnRefusal is why a connection without a request of HTTP is closed before any request.
type ConnRefusal string

// ConnCounts are counts of connections of one kind.
type ConnCounts struct {
	Served  int64 // their requests, or their tunnel, have been decided about
	Refused map[ConnRefusal]int64
}

// A ConnCounter counts connections of one kind: [NewRedirected] and [NewSocks] return one.
type ConnCounter struct {
	kind    string
	advice  map[ConnRefusal]string // for each reason what is wrong, and what can be done
	served  atomic.Int64
	refused map[ConnRefusal]*Rejections // for each reason; only what it points to changes
}

func newConnCounter(kind string, advice map[ConnRefusal]string) *ConnCounter {
	n := &ConnCounter{kind: kind, advice: advice, refused: map[ConnRefusal]*Rejections{}}
	for reason := range advice {
		n.refused[reason] = &Rejections{}
	}
	return n
}

// Serve counts a connection that is served.
func (n *ConnCounter) Serve() { n.served.Add(1) }

// Counts returns how many connections were served and refused.
func (n *ConnCounter) Counts() ConnCounts {
	counts := ConnCounts{n.served.Load(), map[ConnRefusal]int64{}}
	for reason, r := range n.refused {
		counts.Refused[reason] = r.total.Load()
	}
	return counts
}

// Refuse counts a connection and closes it. Once a minute it logs a line. The client sees the end of its connection
// after it was counted.
func (n *ConnCounter) Refuse(c *Conn, reason ConnRefusal, log *slog.Logger) {
	defer c.Close()
	if alert, ok := alerts[reason]; ok {
		defer SendAlert(c, alert)
	}
	n.refused[reason].Add(log, n.kind+" are refused: "+n.advice[reason], LimitKey(AddrOf(c)).String(), "reason", string(reason))
}
