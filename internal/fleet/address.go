package fleet

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// An address is a parsed fleet.address.
type address struct {
	tls            bool
	user, password string
	hosts          []string // host:port: one server, nodes of a Cluster, or Sentinels
	sentinel       string   // name of the primary that the Sentinels watch; empty: hosts are servers
	database       int
}

// parseAddress parses
//
//	redis[s]://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]…[/DATABASE][?sentinel=NAME]
//
// Its errors do not contain the password.
func parseAddress(text string) (address, error) {
	var a address
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return a, errors.New("the address must begin with redis:// or rediss://")
	}
	a.tls = scheme == "rediss"
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		if err := a.setUser(rest[:i]); err != nil {
			return address{}, err
		}
		rest = rest[i+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, database, hasDatabase := strings.Cut(rest, "/")
	if err := a.setQuery(query); err != nil {
		return address{}, err
	}
	if err := a.setHosts(hosts); err != nil {
		return address{}, err
	}
	if hasDatabase && database != "" {
		n, err := strconv.ParseUint(database, 10, 16)
		if err != nil {
			return address{}, fmt.Errorf("the database must be a number, as in redis://HOST/1, got %q", database)
		}
		a.database = int(n)
	}
	if a.database != 0 && len(a.hosts) > 1 && a.sentinel == "" {
		return address{}, errors.New("several hosts without ?sentinel=NAME are nodes of a Cluster, which has no database but 0")
	}
	return a, nil
}

func (a *address) setUser(text string) error {
	user, password, ok := strings.Cut(text, ":")
	if !ok {
		return errors.New("expected USER:PASSWORD@ or :PASSWORD@ before the host")
	}
	var err error
	if a.user, err = url.PathUnescape(user); err != nil {
		return errors.New("the user has a % that is not followed by two hexadecimal digits: write a % as %25")
	}
	if a.password, err = url.PathUnescape(password); err != nil {
		return errors.New("the password has a % that is not followed by two hexadecimal digits: write a % as %25")
	}
	if a.password == "" {
		return errors.New("the password before @ is empty")
	}
	return nil
}

func (a *address) setQuery(query string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil || len(values) != 1 || len(values["sentinel"]) != 1 || values.Get("sentinel") == "" {
		return errors.New("after ? only sentinel=NAME is possible")
	}
	a.sentinel = values.Get("sentinel")
	return nil
}

func (a *address) setHosts(hosts string) error {
	port := "6379"
	if a.sentinel != "" {
		port = "26379"
	}
	for text := range strings.SplitSeq(hosts, ",") {
		host, err := hostPort(text, port)
		if err != nil {
			return err
		}
		a.hosts = append(a.hosts, host)
	}
	return nil
}

// hostPort adds a port to a host that has none.
func hostPort(text, port string) (string, error) {
	host := text
	switch {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case strings.Contains(text, ":"):
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("expected HOST or HOST:PORT, got %q; an IPv6 address is written in brackets", text)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("the port of %q must be a number from 1 to 65535", text)
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n#%\\[]@") {
		return "", fmt.Errorf("expected HOST or HOST:PORT, got %q", text)
	}
	return net.JoinHostPort(host, port), nil
}

// String returns the address without the user and the password.
func (a address) String() string {
	var b strings.Builder
	b.WriteString("redis")
	if a.tls {
		b.WriteByte('s')
	}
	b.WriteString("://")
	b.WriteString(strings.Join(a.hosts, ","))
	if a.database != 0 {
		fmt.Fprintf(&b, "/%d", a.database)
	}
	if a.sentinel != "" {
		b.WriteString("?sentinel=" + url.QueryEscape(a.sentinel))
	}
	return b.String()
}
