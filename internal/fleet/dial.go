package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// minDialTimeout bounds the time for a connection, with TLS and password, if the timeout of a call is less. No
// request waits for it.
const minDialTimeout = time.Second

// dial connects to the store at an address. roots are for rediss://; nil means the system's.
func dial(ctx context.Context, text string, roots *x509.CertPool, prefix string, timeout time.Duration) (*redisServer, error) {
	a, err := parseAddress(Address(text))
	if err != nil {
		return nil, err
	}
	d := &dialer{timeout: max(timeout, minDialTimeout), conns: map[*trackedConn]bool{}}
	if a.tls {
		d.tls = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	// rueidis dials without a context when a client is made.
	defer context.AfterFunc(ctx, d.close)()
	servers := a
	if a.sentinel != "" {
		primary, err := d.primary(ctx, a)
		if err != nil {
			return nil, err
		}
		servers.hosts = []string{primary}
	}
	client, err := d.connect(servers, a.sentinel != "")
	if err != nil {
		d.close()
		return nil, serverError(err)
	}
	open, end := context.WithCancel(context.Background())
	s := &redisServer{client: client, fleet: prefix + ":{fleet}:", noticesTTL: noticesTTL}
	s.stop = sync.OnceFunc(func() {
		end()
		d.close() // first, so that Close does not wait for answers
		client.Close()
	})
	if a.sentinel != "" {
		go d.watchPrimary(open, a, servers.hosts[0])
	}
	return s, nil
}

// A dialer makes the connections of a client, and closes them all.
type dialer struct {
	tls     *tls.Config // nil: without
	timeout time.Duration

	mu     sync.Mutex
	conns  map[*trackedConn]bool
	closed bool
}

// connect returns a client for the servers of an address. With single, the server is not asked whether it
// is a node of a Cluster.
func (d *dialer) connect(a address, single bool) (rueidis.Client, error) {
	options := d.options(a)
	options.ForceSingleClient = single
	client, err := rueidis.NewClient(options)
	if err != nil && client != nil {
		client.Close()
	}
	return client, err
}

// options are for a client that makes no calls of its own, keeps one connection to each node, and repeats nothing.
func (d *dialer) options(a address) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: a.hosts,
		Username:    a.user,
		Password:    a.password,
		SelectDB:    a.database,
		TLSConfig:   d.tls, // tells rueidis which ports of a Cluster to use
		DialCtxFn:   d.dial,
		Dialer:      net.Dialer{Timeout: d.timeout, KeepAlive: -1}, // negative: no PING

		ConnWriteTimeout:    d.timeout,
		PipelineMultiplex:   -1,   // one connection
		AlwaysPipelining:    true, // a call ends with its context
		RingScaleEachConn:   8,
		ReadBufferEachConn:  32 << 10,
		WriteBufferEachConn: 32 << 10,
		ClusterOption:       rueidis.ClusterOption{MaxMovedRedirections: 3},

		DisableCache:  true,
		DisableRetry:  true,
		ClientSetInfo: rueidis.DisableClientSetInfo,
	}
}

// dial is rueidis' way to the store. It is used again when a connection was lost.
func (d *dialer) dial(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var plain net.Dialer // with the keep-alive of TCP
	conn, err := plain.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if conn, err = d.track(conn); err != nil {
		return nil, err
	}
	if d.tls == nil {
		return conn, nil
	}
	config := d.tls.Clone()
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		conn.Close()
		return nil, err
	}
	encrypted := tls.Client(conn, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return encrypted, nil
}

// track returns a connection that close closes too.
func (d *dialer) track(conn net.Conn) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		conn.Close()
		return nil, errors.New("the connection was closed")
	}
	tracked := &trackedConn{conn, d}
	d.conns[tracked] = true
	return tracked, nil
}

// close closes all connections, also the ones that are made later.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for conn := range d.conns {
		conn.Conn.Close()
	}
	clear(d.conns)
}

// A trackedConn is a connection of a dialer.
type trackedConn struct {
	net.Conn
	dialer *dialer
}

func (c *trackedConn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
