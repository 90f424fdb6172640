package field

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ParsePrefix reads a range of addresses as the gate compares it.
func ParsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
		addr = addr.Unmap().WithZone("")
		return p, fmt.Errorf("%q has no length: write %s/%d", text, addr, addr.BitLen())
	}
	switch addr := p.Addr(); {
	case err != nil:
		return p, fmt.Errorf("expected an address range such as 10.0.0.0/8 or 2001:db8::/32, got %q", Cut(text))
	// The gate compares the IPv4 addresses of clients, so an IPv4 range in IPv6 would never match.
	case addr.Is4In6() && p.Bits() < 96:
		return p, fmt.Errorf("%q mixes IPv4 and IPv6: write the IPv4 range", text)
	case addr.Is4In6():
		return p, fmt.Errorf("%q is an IPv4 range in IPv6 form: write %s", text, netip.PrefixFrom(addr.Unmap(), p.Bits()-96).Masked())
	case p != p.Masked():
		return p, fmt.Errorf("%q has bits set after its length: write %s, or %s/%d for the one address", text, p.Masked(), addr, addr.BitLen())
	}
	return p, nil
}

// ParseExpiry returns the first moment after the period of validity. A day in the file is
// the last day of that period, in UTC.
func ParseExpiry(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	return time.Time{}, fmt.Errorf("expected a day such as 2027-03-01 or a time such as 2027-03-01T18:00:00Z, got %q", Cut(text))
}

// ParseProxy reads the URL of a parent proxy; "" is none. Its errors never repeat the text, which may hold a password.
func ParseProxy(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	const want = "expected a proxy's URL such as http://proxy.lan:3128"
	u, err := url.Parse(text)
	switch {
	case err != nil && strings.Contains(text, "://"):
		return nil, fmt.Errorf("%s; this one can't be parsed: percent-encode special characters in a password", want)
	case err != nil || u.Opaque != "" || u.Scheme == "":
		return nil, fmt.Errorf("%s: the scheme http://, https:// or socks5:// is missing", want)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return nil, fmt.Errorf("the scheme %q is not supported: use http, https or socks5", Cut(u.Scheme))
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s: the host is missing", want)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: a proxy's URL ends after the port", want)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("expected a port between 1 and 65535, got %q", Cut(port))
		}
	}
	return u, nil
}

// ParseProxyVariable reads the URL of a parent proxy from an environment variable, where the
// scheme may be missing.
func ParseProxyVariable(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	if rest, ok := strings.CutPrefix(text, "socks5h://"); ok {
		text = "socks5://" + rest // names are always resolved by the proxy
	}
	return ParseProxy(text)
}

// ParseDuration reads what [Duration] writes.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	number, inDays := strings.CutSuffix(text, "d")
	days, notDays := strconv.ParseUint(number, 10, 16)
	switch {
	case text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, fmt.Errorf("%q has no unit: write %ss, or m, h", text, text)
	case inDays && notDays == nil:
		return 0, fmt.Errorf("a day may have 23 or 25 hours and is no unit: write %dh", days*24)
	case err != nil:
		return 0, fmt.Errorf("expected a duration such as 24h, 5m or 10s, got %q", text)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", text)
	}
	return d, nil
}
