package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"robotsgate/internal/field"
)

// Fleet says with which store this gate shares what it knows with other gates.
type Fleet struct {
	Address StoreAddress  `yaml:"address" restart:"yes" doc:"a Valkey or Redis, such as redis://valkey.lan:6379" secret:"true"` // "": no fleet
	KeyFile string        `yaml:"key_file" restart:"yes" doc:"a file, such as fleet.key" path:"yes"`                            // see [ReadKey]
	Prefix  string        `yaml:"prefix" default:"robotsgate" restart:"yes" doc:"the beginning of all keys, such as robotsgate"`
	Timeout time.Duration `yaml:"timeout" default:"100ms" positive:"yes"`
	CAFile  string        `yaml:"ca_file" doc:"a PEM file, such as valkey-ca.pem" path:"yes"` // "": the system's roots
}

// On reports whether the gate belongs to a fleet.
func (f Fleet) On() bool { return f.Address != "" }

// A StoreAddress says where a Valkey or Redis is:
//
//	redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]]…[/DATABASE][?sentinel=NAME]
//
// The scheme rediss is for TLS. Convert it to a string to get the password.
type StoreAddress string

// String returns the address without user and password.
func (a StoreAddress) String() string {
	scheme, rest, ok := strings.Cut(string(a), "://")
	if !ok {
		scheme, rest = "", string(a)
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = hidden + ":" + hidden + rest[at:]
	}
	if ok {
		rest = scheme + "://" + rest
	}
	return rest
}

// TLS reports whether the gate speaks TLS to the store.
func (a StoreAddress) TLS() bool { return strings.HasPrefix(string(a), "rediss://") }

var (
	storeHost    = regexp.MustCompile(`\A[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?\z`)
	sentinelName = regexp.MustCompile(`\A[A-Za-z0-9._-]+\z`)
	fleetPrefix  = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)
)

// parseStoreAddress never repeats the text, which may hold a password.
func parseStoreAddress(text string) (StoreAddress, error) {
	if text == "" {
		return "", nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return "", errors.New("expected redis://HOST:PORT, or rediss://HOST:PORT for TLS")
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := checkStoreLogin(rest[:at]); err != nil {
			return "", err
		}
		rest = rest[at+1:]
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	name, isSentinel := strings.CutPrefix(query, "sentinel=")
	if hasQuery && (!isSentinel || !sentinelName.MatchString(name)) {
		return "", errors.New("behind the ? only sentinel=NAME may stand, with the name that the Sentinels have for the store")
	}
	hosts, database, hasDatabase := strings.Cut(rest, "/")
	number, err := strconv.ParseUint(cmp.Or(database, "0"), 10, 16)
	if hasDatabase && err != nil {
		return "", errors.New("behind the hosts only /NUMBER may stand, of a database, and ?sentinel=NAME")
	}
	if number > 0 && !isSentinel && strings.Contains(hosts, ",") {
		return "", errors.New("several hosts without ?sentinel=NAME are nodes of a Cluster, which has no database but 0")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if err := checkStoreHost(host); err != nil {
			return "", err
		}
	}
	return StoreAddress(text), nil
}

// checkStoreLogin checks what stands before the @.
func checkStoreLogin(text string) error {
	user, password, both := strings.Cut(text, ":")
	_, errUser := url.PathUnescape(user)
	_, errPassword := url.PathUnescape(password)
	switch {
	case !both || password == "":
		return errors.New("before the @ expected USER:PASSWORD, or :PASSWORD for the store's default user")
	case errUser != nil || errPassword != nil:
		return errors.New("user or password has a % that is not followed by two hexadecimal digits: write %25 for a %")
	}
	return nil
}

// checkStoreHost checks a HOST or HOST:PORT. Without its @, a login looks like one.
func checkStoreHost(text string) error {
	host, port, hasPort := text, "", false
	if inside, behind, ok := strings.Cut(text, "]"); ok {
		addr, err := netip.ParseAddr(strings.TrimPrefix(inside, "["))
		if err != nil || !addr.Is6() || !strings.HasPrefix(inside, "[") || behind != "" && behind[0] != ':' {
			return errors.New("an IPv6 address is written as [2001:db8::1]:6379")
		}
		host, port, hasPort = "localhost", strings.TrimPrefix(behind, ":"), behind != ""
	} else {
		host, port, hasPort = strings.Cut(text, ":")
	}
	switch {
	case host == "":
		return errors.New("a host is missing: expected HOST:PORT, several separated by commas")
	case !storeHost.MatchString(host):
		return errors.New("a host is no host name: expected HOST:PORT, such as valkey.lan:6379; an IPv6 address is written as [2001:db8::1]:6379")
	case hasPort && checkPort(port, 1) != nil:
		return errors.New("expected a port between 1 and 65535 behind a host; user and password end with @")
	}
	return nil
}

// maxFleetTimeout bounds fleet.timeout: a request waits for the store so long once.
const maxFleetTimeout = 5 * time.Second

func (c *Config) checkFleet() {
	s, f := &c.source, c.Fleet
	s.Require(f.KeyFile == "" || f.On() || s.Bad("fleet.address"), "fleet.key_file", "needs fleet.address: without one there is no fleet")
	s.Require(!f.On() || f.KeyFile != "" || s.Bad("fleet.key_file"), "fleet.address", "needs fleet.key_file, a file of at least %d random bytes that is the same for all gates%s", leastKey, makeKey("fleet.key"))
	s.Require(fleetPrefix.MatchString(f.Prefix), "fleet.prefix", "expected 1 to 64 letters, digits, and . _ -, such as robotsgate, got %q", field.Cut(f.Prefix))
	s.Require(f.Timeout <= maxFleetTimeout, "fleet.timeout", "%s is too long for a request to wait: at most %s", field.Duration(f.Timeout), field.Duration(maxFleetTimeout))
	s.Require(f.CAFile == "" || f.Address.TLS() || s.Bad("fleet.address"), "fleet.ca_file", "needs a rediss:// address: redis:// is without TLS")
}

// FleetHash returns a hash of what should be equal in all gates of a fleet. It leaves out the
// addresses, names of files, limits and logs of one machine, and secrets.
func (c *Config) FleetHash() (string, error) {
	d, own := *c, Default()
	d.Listen, d.ListenTransparent, d.DataDir, d.Admin, d.Log, d.Limits = own.Listen, own.ListenTransparent, own.DataDir, own.Admin, own.Log, own.Limits
	d.HTTPS.CACert, d.HTTPS.CAKey, d.Egress.CAFile = "", "", ""
	d.Fleet.Address, d.Fleet.KeyFile, d.Fleet.CAFile = "", "", ""
	text, err := d.Effective()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
