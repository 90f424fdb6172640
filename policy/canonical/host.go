package canonical

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// profile maps names as browsers do (UTS 46), but without their STD3 rules:
// names such as _acme.example are in use.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

// Host returns the canonical form of a host name or address: in lower case,
// without the dot of the root, international names in ASCII (RFC 5891), IPv6
// without brackets, IPv4 in IPv6 as IPv4. It refuses all spellings of an IPv4
// address but four decimal numbers: some resolvers take 0x7f.1 and 2130706433
// for 127.0.0.1, others for names.
func Host(host string) (string, error) {
	if strings.Contains(host, ":") {
		return canonicalIPv6(host)
	}
	name, err := toASCII(host)
	if err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".")
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return "", err
		}
	}
	if endsInNumber(name) {
		if _, err := netip.ParseAddr(name); err != nil {
			return "", fmt.Errorf("%q is not an IPv4 address: write four decimal numbers", name)
		}
	}
	return name, checkLength(name)
}

// HostPattern returns the canonical form of a host in which each * stands for any text: as by [Host], as far
// as its stars permit. One with two colons is for IPv6 addresses in their canonical form (RFC 5952).
func HostPattern(pattern string) (string, error) {
	if !strings.Contains(pattern, "*") {
		return Host(pattern)
	}
	bare := withoutBrackets(Lower(pattern))
	if strings.Count(bare, ":") > 1 && strings.Trim(bare, "0123456789abcdef:*") == "" {
		return bare, nil
	}
	// A truncated *.example.com must not be taken for every host.
	if strings.HasSuffix(pattern, "*.") {
		return "", errEmptyLabel
	}
	labels := strings.Split(strings.TrimSuffix(pattern, "."), ".")
	for i, label := range labels {
		ascii := Lower(label)
		if !strings.Contains(label, "*") {
			var err error
			if ascii, err = toASCII(label); err != nil {
				return "", err
			}
		}
		if err := checkLabel(strings.ReplaceAll(ascii, "*", "x")); err != nil {
			return "", err
		}
		labels[i] = ascii
	}
	name := strings.Join(labels, ".")
	return name, checkLength(strings.ReplaceAll(name, "*", ""))
}

// toASCII returns a name in lower case, and in ASCII if it is international.
func toASCII(name string) (string, error) {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return Lower(name), nil
	}
	ascii, err := profile.ToASCII(name)
	if err != nil || !utf8.ValidString(name) {
		return "", fmt.Errorf("%q is not a valid international name", name)
	}
	return ascii, nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errEmptyLabel
	case len(label) > 63:
		return errors.New("a label of a host name has at most 63 characters")
	}
	for _, c := range label {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("a host name can't have %q", c)
		}
	}
	return nil
}

func checkLength(name string) error {
	if len(name) > 253 {
		return errors.New("a host name has at most 253 characters")
	}
	return nil
}

// endsInNumber reports whether a resolver that follows inet_aton takes a name for an
// IPv4 address (WHATWG URL, "ends in a number").
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

var (
	errEmptyLabel = errors.New("a label of the host name is empty")
	errNotOnly    = errors.New("a host only, without scheme, port and path")
)

// canonicalIPv6 returns the canonical form of an address, with or without brackets.
func canonicalIPv6(host string) (string, error) {
	addr, err := netip.ParseAddr(withoutBrackets(host))
	switch {
	case err != nil:
		return "", errNotOnly
	case addr.Zone() != "":
		return "", errors.New("an address without a zone")
	}
	return addr.Unmap().String(), nil
}

func withoutBrackets(host string) string {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1]
	}
	return host
}

// Lower maps ASCII letters only. strings.ToLower would also turn a Kelvin sign
// into a k, so that two different names would be equal.
func Lower(s string) string {
	if !strings.ContainsFunc(s, upper) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if upper(rune(c)) {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func upper(r rune) bool { return 'A' <= r && r <= 'Z' }
