package confine

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Reach is a destination that bypasses the gate: a host and a port, or the path of a Unix socket.
type Reach struct {
	Host string // a name in lower case or an address, without brackets
	Port uint16
	Path string // of a Unix socket, absolute; "": Host and Port are given
}

// ParseReach reads HOST:PORT or unix:PATH.
func ParseReach(text string) (Reach, error) {
	if path, is := strings.CutPrefix(text, "unix:"); is {
		return parseUnix(path)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return Reach{}, fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", text)
	}
	n, err := parsePort(port)
	if err != nil {
		return Reach{}, fmt.Errorf("%q: %w", text, err)
	}
	if n == 53 {
		return Reach{}, fmt.Errorf("%q: port 53 cannot be reached, since the gate answers DNS", text)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
			return Reach{}, fmt.Errorf("%q: name one host, without a zone", text)
		}
		return Reach{Host: addr.Unmap().String(), Port: n}, nil
	}
	if strings.ContainsAny(host, ` /\:@[]`) {
		return Reach{}, fmt.Errorf("%q: the host is not a valid name", text)
	}
	return Reach{Host: canonicalName(host), Port: n}, nil
}

func parseUnix(path string) (Reach, error) {
	if path == "" {
		return Reach{}, fmt.Errorf("unix: needs the path of a socket")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Reach{}, err
	}
	info, err := os.Stat(abs)
	switch {
	case os.IsNotExist(err):
		return Reach{}, fmt.Errorf("%s: no such file: start the server that makes this socket first", abs)
	case err != nil:
		return Reach{}, err
	case info.Mode()&os.ModeSocket == 0:
		return Reach{}, fmt.Errorf("%s is not a socket", path)
	}
	return Reach{Path: abs}, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port: it must be a number from 1 to 65535", text)
	}
	return uint16(n), nil
}

// hostPort is the destination as it is dialled.
func (r Reach) hostPort() string { return net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))) }

// addresses returns the addresses at which the command finds a host: the literal address, or for a
// name what the gate's DNS answers, and for the machine's own name what the command's hosts file has.
func (r Reach) addresses(names *names) []netip.Addr {
	if addr, err := netip.ParseAddr(r.Host); err == nil {
		return []netip.Addr{addr}
	}
	if isLocalhost(r.Host) {
		return []netip.Addr{loopback4, loopback6}
	}
	all := []netip.Addr{names.address(r.Host)}
	if own, err := os.Hostname(); err == nil && canonicalName(own) == r.Host {
		all = append(all, loopback4)
	}
	return all
}
