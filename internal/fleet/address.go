package fleet

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// An Address says where a Valkey or Redis is:
//
//	redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]…[/DATABASE][?sentinel=NAME]
//
// The scheme rediss is for TLS. Convert it to a string to get the password.
type Address string

// String returns the address with something in place of user and password.
func (a Address) String() string {
	at := strings.LastIndex(string(a), "@")
	if at < 0 {
		return string(a)
	}
	scheme, _, ok := strings.Cut(string(a[:at]), "://")
	if !ok {
		return "xxxxx:xxxxx" + string(a[at:])
	}
	return scheme + "://xxxxx:xxxxx" + string(a[at:])
}

// withoutLogin returns the address without user and password.
func (a Address) withoutLogin() string {
	scheme, rest, _ := strings.Cut(string(a), "://")
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
}

// TLS reports whether the gate speaks TLS to the store.
func (a Address) TLS() bool { return strings.HasPrefix(string(a), "rediss://") }

// An address is a parsed Address.
type address struct {
	tls            bool
	user, password string
	hosts          []string // host:port: one server, nodes of a Cluster, or Sentinels
	sentinel       string   // name of the primary that the Sentinels watch; empty: hosts are servers
	database       int
}

var storeHost = regexp.MustCompile(`\A[A-Za-z0-9._:-]+\z`)

// parseAddress parses an Address. Its errors never repeat the text, which may hold a password.
func parseAddress(text Address) (address, error) {
	var a address
	scheme, rest, ok := strings.Cut(string(text), "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return a, errors.New("expected redis://HOST:PORT, or rediss://HOST:PORT for TLS")
	}
	a.tls = scheme == "rediss"
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := a.setUser(rest[:at]); err != nil {
			return address{}, err
		}
		rest = rest[at+1:]
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	name, isSentinel := strings.CutPrefix(query, "sentinel=")
	if hasQuery && (!isSentinel || name == "" || strings.ContainsAny(name, "&%")) {
		return address{}, errors.New("behind the ? only sentinel=NAME may stand, with the name that the Sentinels have for the store")
	}
	a.sentinel = name
	hosts, database, _ := strings.Cut(rest, "/")
	if database != "" {
		n, err := strconv.ParseUint(database, 10, 16)
		if err != nil {
			return address{}, errors.New("behind the hosts only /NUMBER may stand, of a database, and ?sentinel=NAME")
		}
		a.database = int(n)
	}
	if a.database > 0 && !isSentinel && strings.Contains(hosts, ",") {
		return address{}, errors.New("several hosts without ?sentinel=NAME are nodes of a Cluster, which has no database but 0")
	}
	if err := a.setHosts(hosts); err != nil {
		return address{}, err
	}
	return a, nil
}

// setUser reads what stands before the @. Unlike package url it takes a password with any character.
func (a *address) setUser(text string) error {
	user, password, both := strings.Cut(text, ":")
	if !both || password == "" {
		return errors.New("before the @ expected USER:PASSWORD, or :PASSWORD for the store's default user")
	}
	var errUser, errPassword error
	a.user, errUser = url.PathUnescape(user)
	a.password, errPassword = url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return errors.New("user or password has a % that is not followed by two hexadecimal digits: write %25 for a %")
	}
	return nil
}

func (a *address) setHosts(hosts string) error {
	standard := "6379"
	if a.sentinel != "" {
		standard = "26379"
	}
	for text := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port, err = net.SplitHostPort(text + ":" + standard)
		}
		if err != nil || !storeHost.MatchString(host) {
			return errors.New("expected HOST:PORT, such as valkey.lan:6379 or [2001:db8::1]:6379, several separated by commas; user and password end with @")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("expected a port between 1 and 65535 behind a host; user and password end with @")
		}
		a.hosts = append(a.hosts, net.JoinHostPort(host, port))
	}
	return nil
}
