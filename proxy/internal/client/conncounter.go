package client

import (
	"log/slog"
	"strings"
	"sync"
)

// A ConnRefusal is why a connection without a request of HTTP is closed before any request.
type ConnRefusal string

// ConnCounts are counts of connections of one kind.
type ConnCounts struct {
	Served  int64 // their requests, or their tunnel, have been decided about
	Refused map[ConnRefusal]int64
}

// A connCounter counts connections of one kind.
type connCounter struct {
	countMu sync.Mutex
	served  int64
	refused map[ConnRefusal]*Rejections
}

// Serve counts a connection that is served.
func (d *connCounter) Serve() {
	d.countMu.Lock()
	defer d.countMu.Unlock()
	d.served++
}

// counts returns the counts, with the reasons that advice has.
func (d *connCounter) counts(advice map[ConnRefusal]string) ConnCounts {
	d.countMu.Lock()
	defer d.countMu.Unlock()
	refused := map[ConnRefusal]int64{}
	for reason := range advice {
		refused[reason] = d.refused[reason].Total()
	}
	return ConnCounts{d.served, refused}
}

// refuse counts a connection and closes it. Once a minute it logs the clients, with this text. The client sees the
// end of its connection after it was counted.
func (d *connCounter) refuse(c *Conn, reason ConnRefusal, log *slog.Logger, text string) {
	defer c.Close()
	if alert, ok := alerts[reason]; ok {
		defer SendAlert(c, alert)
	}
	d.countMu.Lock()
	if d.refused == nil {
		d.refused = map[ConnRefusal]*Rejections{}
	}
	if d.refused[reason] == nil {
		d.refused[reason] = &Rejections{}
	}
	names := d.refused[reason].Add(LimitKey(AddrOf(c)).String())
	d.countMu.Unlock() // before the log, which may block
	if len(names) > 0 {
		log.Warn(text, "reason", string(reason), "clients", strings.Join(names, ", "))
	}
}
