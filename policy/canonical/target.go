// Package canonical makes the one form of a URL by which a request is decided, sent and recorded: its [Target], with
// the [Host] and the path of that.
package canonical

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A Target is the URL of a request, in canonical form. The decision, the request that is
// sent, and the name of the origin all come from it, so that one spelling of a URL
// can't be judged and another fetched.
type Target struct {
	Scheme string // http or https
	Host   string // lower-case name or IP literal, with the port unless it is the scheme's own
	Path   string // path and query as sent; begins with "/"
}

// ParseTarget makes the canonical target of a request. Scheme and authority are as
// the client named them, uri is the path and query as it sent them. Invalid bytes
// of the path are percent-encoded and dot segments removed. The rest of the path stays
// as it is, since signed URLs break otherwise. A URL that could be read in two
// ways is an error that says what to send instead.
func ParseTarget(scheme, authority, uri string) (Target, error) {
	scheme = strings.ToLower(scheme)
	if scheme != "http" && scheme != "https" {
		return Target{}, fmt.Errorf("scheme %q is neither http nor https", scheme)
	}
	host, err := canonicalAuthority(scheme, authority)
	if err != nil {
		return Target{}, err
	}
	path, err := canonicalPath(uri)
	if err != nil {
		return Target{}, err
	}
	return Target{Scheme: scheme, Host: host, Path: path}, nil
}

// ParseURL makes the canonical target of an absolute URL.
func ParseURL(raw string) (Target, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		// The error is without the text, which may hold a password.
		return Target{}, errors.New("it is not an absolute URL; write it with http:// or https://")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	uri := rest[end:]
	if !strings.HasPrefix(uri, "/") {
		uri = "/" + uri
	}
	return ParseTarget(scheme, rest[:end], uri)
}

// ReadURL makes the target of a URL that a person typed. A path that ParseURL
// refuses is taken as it is.
func ReadURL(raw string) (Target, error) {
	t, err := ParseURL(raw)
	scheme, rest, ok := strings.Cut(raw, "://")
	if err == nil || !ok {
		return t, err
	}
	if t, err = ParseTarget(scheme, rest[:strings.IndexAny(rest+"/", "/?#;")], "/"); err == nil {
		t.Path = PathOf(raw)
	}
	return t, err
}

// Origin returns the scheme, host and port. A robots.txt is for one origin.
func (t Target) Origin() string { return t.Scheme + "://" + t.Host }

// String returns the target as a URL.
func (t Target) String() string { return t.Scheme + "://" + t.Host + t.Path }

// Hostname returns the host without its port and brackets.
func (t Target) Hostname() string { return (&url.URL{Host: t.Host}).Hostname() }

// Address returns host and port in the form that a dialer takes.
func (t Target) Address() string {
	if _, port := SplitPort(t.Host); port != "" {
		return t.Host
	}
	return t.Host + ":" + DefaultPort(t.Scheme)
}

// URL returns the target for net/http, which sends t.Path byte for byte: net/http
// prefers RawPath whenever that is a valid encoding of Path, as it is here.
func (t Target) URL() *url.URL {
	path, query, hasQuery := strings.Cut(t.Path, "?")
	u := &url.URL{Scheme: t.Scheme, Host: t.Host, RawPath: path, RawQuery: query, ForceQuery: hasQuery && query == ""}
	u.Path, _ = url.PathUnescape(path) // canonicalPath has checked every escape
	return u
}

// DefaultPort returns the port of a scheme, http or https, that a URL does not name.
func DefaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// SplitPort cuts an authority at its port's colon.
func SplitPort(authority string) (host, port string) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") || strings.Contains(authority[i:], "]") {
		return authority, ""
	}
	return authority[:i], authority[i+1:]
}

// canonicalAuthority returns the host in the form of [Host], an IPv6 address in brackets, with the port
// unless it is the scheme's own.
func canonicalAuthority(scheme, authority string) (string, error) {
	if strings.ContainsRune(authority, '@') {
		return "", errors.New("the URL carries a user name or password; send them as an Authorization header")
	}
	if i := strings.IndexAny(authority, `/?#\`); i >= 0 {
		// The error is without the rest, which may be a query with secrets.
		return "", fmt.Errorf("host and port can't have a %q in them", authority[i:i+1])
	}
	name, port := SplitPort(authority)
	if strings.Contains(name, ":") && name[0] != '[' {
		return "", fmt.Errorf("host %q has more than one colon; write an IPv6 address in brackets", name)
	}
	host, err := Host(name)
	if err != nil {
		return "", fmt.Errorf("host %q is not valid: %w", name, err)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || port == DefaultPort(scheme) {
		return host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if port = strconv.FormatUint(n, 10); port == DefaultPort(scheme) {
		return host, nil
	}
	return host + ":" + port, nil
}

// canonicalPath returns path and query as they will be sent.
func canonicalPath(uri string) (string, error) {
	if !strings.HasPrefix(uri, "/") {
		return "", errors.New("the path does not begin with a slash")
	}
	invalid, inQuery := false, false
	for i := 0; i < len(uri); i++ {
		switch c := uri[i]; {
		case c == '%' && !inQuery: // in a query it travels as it came, as browsers send it
			if i+2 >= len(uri) || !isHex(uri[i+1]) || !isHex(uri[i+2]) {
				return "", errors.New("a % in the path is not followed by two hex digits; write %25 for the character itself")
			}
		case c <= ' ' || c == 0x7f:
			return "", errors.New("the URL contains white space or a control character; percent-encode it")
		case c == '#':
			return "", errors.New("the URL contains a fragment; leave # and what follows out")
		case c == '\\' && !inQuery:
			return "", errors.New("the path contains a backslash, which some servers read as a slash; write %5C for the character itself")
		case c == '?':
			inQuery = true
		case invalidInPath(c):
			invalid = true
		}
	}
	if invalid {
		uri = percentEncode(uri)
	}
	return withoutDots(uri), nil
}

// invalidInPath reports bytes that RFC 3986, 3.3 and 3.4 do not admit raw.
// Brackets are not in its grammar either, but common in queries and understood
// alike everywhere.
func invalidInPath(c byte) bool {
	switch c {
	case '"', '<', '>', '\\', '^', '`', '{', '|', '}':
		return true
	}
	return c >= 0x80
}

// percentEncode encodes the bytes of s that are invalid in a path.
func percentEncode(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; invalidInPath(c) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
