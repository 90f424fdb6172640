package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// dialTimeout bounds the time for a connection, with TLS and password, if the timeout of a call is less. No request
// waits for it, but for the first one after a connection was lost.
const dialTimeout = time.Second

// A server is the fleet's Valkey or Redis. Each of its calls is one script with one key: with two, a Cluster that moves
// their slot to another node refuses them.
type server struct {
	address address
	ctx     context.Context       // no connection is open after its end
	roots   func() *x509.CertPool // for the server's certificate

	client atomic.Pointer[rueidis.Client]
}

// scripts use the commands in [rights].
//
//go:embed scripts/*.lua
var scripts embed.FS

var (
	loadScript    = newScript("load")
	saveScript    = newScript("save")
	acquireScript = newScript("acquire")
	releaseScript = newScript("release")
	reserveScript = newScript("reserve")
	listScript    = newScript("list")
)

func newScript(name string) *rueidis.Lua {
	var text []byte
	for _, file := range []string{"lib", name} {
		data, err := scripts.ReadFile("scripts/" + file + ".lua")
		if err != nil {
			panic(err) // the file is part of the program
		}
		text = append(text, data...)
	}
	return rueidis.NewLuaScript(string(text))
}

// connect makes the client, which connects again by itself from then on. One goroutine calls it.
func (s *server) connect() error {
	if s.client.Load() != nil {
		return nil
	}
	o := rueidis.ClientOption{
		InitAddress: s.address.hosts, Username: s.address.user, Password: s.address.password, SelectDB: s.address.database,
		DialCtxFn: s.dial, Dialer: net.Dialer{Timeout: dialTimeout}, ConnWriteTimeout: dialTimeout,
		AlwaysPipelining: true, // a call ends with its context
		DisableCache:     true, DisableRetry: true, ClientSetInfo: rueidis.DisableClientSetInfo,
	}
	if s.address.tls {
		o.TLSConfig = new(tls.Config) // tells rueidis which ports of a Cluster to use
	}
	if s.address.sentinel != "" {
		o.Sentinel = rueidis.SentinelOption{MasterSet: s.address.sentinel, Dialer: o.Dialer, TLSConfig: o.TLSConfig}
	}
	client, err := newClient(o)
	if err != nil && s.address.sentinel != "" && strings.Contains(err.Error(), "NOAUTH") {
		o.Sentinel.Username, o.Sentinel.Password = o.Username, o.Password
		client, err = newClient(o)
	}
	if err != nil {
		return serverError(err)
	}
	s.client.Store(&client)
	return nil
}

func newClient(o rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(o)
	if err != nil && client != nil {
		client.Close()
	}
	return client, err
}

// dial is rueidis' way to the store.
func (s *server) dial(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
	dial := d.DialContext
	if c != nil {
		dial = (&tls.Dialer{NetDialer: d, Config: &tls.Config{RootCAs: s.roots()}}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return openConn{conn, context.AfterFunc(s.ctx, func() { conn.Close() })}, nil
}

// An openConn is a connection that the end of a context closes.
type openConn struct {
	net.Conn
	forget func() bool
}

func (c openConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

func (s *server) close() {
	if c := s.client.Load(); c != nil {
		(*c).Close()
	}
}

// call runs a script, and returns its answer: at least so many texts.
func (s *server) call(ctx context.Context, least int, script *rueidis.Lua, key string, args ...string) ([]string, error) {
	client := s.client.Load()
	if client == nil {
		return nil, errAway
	}
	answer, err := script.Exec(ctx, *client, []string{key}, args).ToMessage()
	if err != nil {
		return nil, serverError(err)
	}
	got, err := answer.AsStrSlice()
	if err != nil || len(got) < least {
		return nil, errAnswer
	}
	return got, nil
}

var (
	errAnswer = errors.New("the store's answer has not the form that the scripts have")

	// userName is where a server names its user.
	userName = regexp.MustCompile(`\bUser \S+ has\b`)
)

// serverError cuts errors of the store to 200 bytes,
// without what the gate has sent, and returns all others as they are.
func serverError(err error) error {
	answer, ok := rueidis.IsRedisErr(err)
	if !ok {
		return err
	}
	text := answer.Error()
	// What follows is the number of the script, or what the gate has sent: its password, perhaps.
	text, _, _ = strings.Cut(text, " script: ")
	text, _, _ = strings.Cut(text, "with args beginning with")
	text = userName.ReplaceAllString(text, "the user has")
	if strings.HasPrefix(text, "The user executing the script can't") {
		text = "NOPERM " + text // which Redis 7.0 leaves out
	}
	return errors.New(text[:min(len(text), 200)])
}

// number returns a number that a script has returned as text.
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 9e15 {
		return 0, errAnswer
	}
	return n, nil
}

// micros returns a duration in whole microseconds, rounded up, not more than ten years.
func micros(d time.Duration) string {
	const most = 10 * 365 * 24 * time.Hour
	return strconv.FormatInt((max(0, min(d, most)) + time.Microsecond - 1).Microseconds(), 10)
}

// millis returns a time to live, which is at least a millisecond.
func millis(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
