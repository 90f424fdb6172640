package field

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

type sizeUnit struct {
	name  string
	bytes int64
}

// units begin with the largest, so that Size finds the shortest form.
var units = []sizeUnit{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
}

// Size returns a number of bytes as a configuration writes it, such as 512KiB.
func Size[T int | int64](n T) string {
	for _, u := range units {
		if n != 0 && int64(n)%u.bytes == 0 {
			return strconv.FormatInt(int64(n)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// ParseSize reads what Size writes.
func ParseSize(text string) (n int64, ok bool) {
	number := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	unit := strings.TrimPrefix(text[len(number):], " ")
	n, err := strconv.ParseInt(number, 10, 64)
	i := slices.IndexFunc(units, func(u sizeUnit) bool { return strings.EqualFold(u.name, unit) })
	if text == "0" || err != nil || i < 0 || n > math.MaxInt64/units[i].bytes {
		return 0, text == "0" // in every unit
	}
	return n * units[i].bytes, true
}

// Duration returns d as a configuration writes it: 24h, not 24h0m0s.
func Duration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}

// ParseProxy reads the URL of a parent proxy. Its errors never repeat the text, which may hold a password.
func ParseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.Port() != "" && !isPort(u.Port()) {
		return nil, errors.New("expected the URL of a proxy, http://, https:// or socks5://, with special characters in a password percent-encoded and nothing behind the port, such as http://proxy.lan:3128")
	}
	return u, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
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
