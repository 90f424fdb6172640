package glob

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// toASCII leaves STD3 rules out, since names such as _acme.example do occur.
var toASCII = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// Host compiles a glob for host names or literal addresses: *.example.com is
// every name below example.com, not example.com itself. The pattern is made
// canonical: lower case, no final dot, international names in their ASCII
// form. What could never match a host is an error.
func Host(pattern string) (Glob, error) {
	name, err := canonical(pattern)
	if err != nil {
		return Glob{}, err
	}
	return Glob{source: name, parts: strings.Split(name, "*"), host: true}, nil
}

// Name returns the canonical form of one host name or address, as Host does,
// and refuses wildcards.
func Name(host string) (string, error) {
	if strings.Contains(host, "*") {
		return "", errors.New("a name can't have a *")
	}
	return canonical(host)
}

func canonical(pattern string) (string, error) {
	switch {
	case pattern == "":
		return "", errors.New("a host can't be empty")
	case strings.ContainsAny(pattern, " \t\r\n"):
		return "", errors.New("a host has no white space")
	case strings.Contains(pattern, "://"):
		return "", errors.New("a host only, without the scheme")
	case strings.Contains(pattern, "/"):
		return "", errors.New("a host only, without a path or prefix length")
	case strings.Contains(pattern, "@"):
		return "", errors.New("a host only, without a user")
	case strings.Contains(pattern, ":"):
		return canonicalIPv6(pattern)
	}
	pattern = strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(lower(pattern))
	for strings.Contains(pattern, "**") {
		pattern = strings.ReplaceAll(pattern, "**", "*")
	}
	// Half of *.example.com must not be taken for every host.
	if before, ok := strings.CutSuffix(pattern, "*."); ok {
		return "", fmt.Errorf("nothing comes after the dot: write %s* without it, or the rest of the name", before)
	}
	pattern = strings.TrimSuffix(pattern, ".")
	if rest, ok := strings.CutPrefix(pattern, "."); ok {
		return "", fmt.Errorf("a host doesn't start with a dot: write *.%s for every name below it", rest)
	}
	labels := strings.Split(pattern, ".")
	for i, label := range labels {
		l, err := canonicalLabel(label)
		if err != nil {
			return "", err
		}
		labels[i] = l
	}
	name := strings.Join(labels, ".")
	if err := numeric(name, labels); err != nil {
		return "", err
	}
	if len(strings.ReplaceAll(name, "*", "")) > 253 {
		return "", errors.New("a host name has at most 253 characters")
	}
	return name, nil
}

// numeric refuses what looks like an IPv4 address and is none. A host that ends in a
// number is an address, and has four decimal numbers (RFC 3986, 3.2.2).
func numeric(name string, labels []string) error {
	last := labels[len(labels)-1]
	hex, isHex := strings.CutPrefix(last, "0x")
	switch {
	case strings.Contains(last, "*"), strings.Trim(last, "0123456789") != "" && !(isHex && strings.Trim(hex, "0123456789abcdef") == ""):
		return nil
	case !strings.Contains(name, "*"):
		if _, err := netip.ParseAddr(name); err != nil {
			return fmt.Errorf("%q is no IPv4 address: write four decimal numbers", name)
		}
		return nil
	}
	if n, err := strconv.ParseUint(last, 10, 8); err != nil || strconv.FormatUint(n, 10) != last || len(labels) > 4 {
		return fmt.Errorf("%q matches no IPv4 address: write four decimal numbers, or * in place of some", name)
	}
	for _, label := range labels {
		if strings.Trim(label, "0123456789*") != "" {
			return fmt.Errorf("%q matches nothing: what ends in a number is an IPv4 address", name)
		}
	}
	return nil
}

func canonicalLabel(label string) (string, error) {
	if label == "" {
		return "", errors.New("a host name has no two dots in a row")
	}
	ascii := label
	if strings.ContainsFunc(label, func(r rune) bool { return r >= 0x80 }) {
		if strings.Contains(label, "*") {
			return "", fmt.Errorf("%q mixes * with letters outside ASCII, which DNS encodes by the whole label: write the label out", label)
		}
		var err error
		if ascii, err = toASCII.ToASCII(label); err != nil {
			return "", fmt.Errorf("%q is no valid international name", label)
		}
	}
	if strings.Trim(ascii, "-") == "" {
		return "", fmt.Errorf("%q is no label of a host name", label)
	}
	for _, r := range ascii {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_*", r) {
			return "", fmt.Errorf("a host name can't have %q", r)
		}
	}
	if len(strings.ReplaceAll(ascii, "*", "")) > 63 {
		return "", errors.New("a label of a host name has at most 63 characters")
	}
	return ascii, nil
}

// canonicalIPv6 handles what has a colon: an IPv6 address, a glob for several,
// or else a host with a port, which is refused.
func canonicalIPv6(pattern string) (string, error) {
	bare := pattern
	if inner, ok := strings.CutPrefix(pattern, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", errors.New("a host only, without a port")
		}
		bare = inner
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("an address without a zone")
		}
		return addr.Unmap().String(), nil // as a URL's host is read, too
	}
	bare = lower(bare)
	if !strings.Contains(bare, "*") || strings.Count(bare, ":") < 2 || strings.Trim(bare, "0123456789abcdef:*") != "" {
		return "", errors.New("a host only, without a port")
	}
	for strings.Contains(bare, "**") {
		bare = strings.ReplaceAll(bare, "**", "*")
	}
	if strings.HasPrefix(bare, "::ffff:") {
		return "", fmt.Errorf("%q is for IPv4 addresses, which are matched in their own form: write that, such as 10.*", bare)
	}
	if !mayBeIPv6(bare) {
		return "", fmt.Errorf("%q matches no IPv6 address: write one without leading zeros, as 2001:db8::1, with * in place of some of it", bare)
	}
	return bare, nil
}

// mayBeIPv6 reports whether a glob may match an address in its canonical form (RFC 5952).
func mayBeIPv6(pattern string) bool {
	if strings.Contains(pattern, ":::") || strings.Count(pattern, "::") > 1 || strings.Count(pattern, ":") > 7 {
		return false
	}
	// Only a double colon stands at an end.
	first, last := strings.TrimPrefix(pattern, ":"), strings.TrimSuffix(pattern, ":")
	if first != pattern && first[0] != ':' && first[0] != '*' || last != pattern && last[len(last)-1] != ':' && last[len(last)-1] != '*' {
		return false
	}
	for piece := range strings.SplitSeq(pattern, ":") {
		if start, _, _ := strings.Cut(piece, "*"); len(start) > 1 && start[0] == '0' {
			return false
		}
		if slices.ContainsFunc(strings.Split(piece, "*"), func(digits string) bool { return len(digits) > 4 }) {
			return false
		}
	}
	return true
}
