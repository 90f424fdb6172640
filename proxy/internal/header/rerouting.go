package header

import (
	"bytes"
	_ "embed"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// reroutingTable lists request headers from which a server, a framework or a proxy in front of
// them takes the path, the host or the scheme, in place of what the request names. A client that
// sends one could have one URL judged and receive another. Browsers and crawlers have no use for
// them: reverse proxies set them, for the servers behind them.
//
// They are removed from every request. Servers read most of them only where they
// are configured to, or where a proxy usually overwrites them; the gate cannot know which.
//
// These look alike and are passed on:
//
//   - X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override: robots.txt has no methods, so
//     the decision is the same. Clients of REST services need them, for GETs with a long query.
//     Where an override has methods, CheckMethod refuses them.
//   - X-Forwarded-For, X-Forwarded-By, X-Real-IP, Via and other names of clients and proxies:
//     they tell where a request comes from.
//   - Destination (RFC 4918, 10.3), Referer, Origin, Range, Accept and Accept-*: they belong to
//     the request, and servers choose by them among the answers for one URL.
//   - Next-URL: Next.js' own pages send it, and it names the page that the user comes from.
//   - X-Requested-With, HX-*, Turbo-Frame: pages send them, to receive a part of the same page.
//
//go:embed rerouting.txt
var reroutingTable string

// MaxPlain is longer than any name that dropRerouting looks for, in bytes.
const MaxPlain = 64

// reroutingNames has the names of reroutingTable as Plain writes them.
var reroutingNames = func() map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(reroutingTable) {
		if row := strings.Fields(line); len(row) > 0 && row[0] != "#" {
			names[string(Plain(make([]byte, 0, MaxPlain), row[0]))] = true
		}
	}
	return names
}()

// framing are headers that only net/http may write. In another spelling they come to it as
// any others.
var framing = map[string]bool{"content-length": true, "transfer-encoding": true, "connection": true, "host": true}

// dropRerouting removes the headers of reroutingTable from a request's header in every spelling that a
// server may take for theirs, and in such spellings the gate's own headers, the headers of
// framing and the client's login.
func dropRerouting(h http.Header) {
	for name := range h {
		var buf [MaxPlain]byte
		plain := Plain(buf[:0], name)
		if reroutingNames[string(plain)] || framing[string(plain)] && !strings.EqualFold(name, string(plain)) ||
			string(plain) == "proxy-authorization" || bytes.HasPrefix(plain, ownPrefix) {
			delete(h, name)
		}
	}
}

// methodClaims are headers from which servers and frameworks take the method.
var methodClaims = map[string]bool{"x-http-method-override": true, "x-http-method": true, "x-method-override": true}

// CheckMethod returns an error if a header names another method than the request's: an
// override for the request's method would permit the other one too.
func CheckMethod(method string, h http.Header) error {
	for name, values := range h {
		var buf [MaxPlain]byte
		if !methodClaims[string(Plain(buf[:0], name))] {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) != method }) {
			return errors.New(name + " names another method than the request has, and this gate permits requests by their methods")
		}
	}
	return nil
}

var ownPrefix = []byte(strings.ToLower(OwnPrefix))

// Plain appends a field's name in lower case, with a hyphen for every other character, as
// far as there is room. Servers that hand headers on as variables write "_" for a hyphen (RFC
// 3875, 4.1.18) and lighttpd does so for all that is neither letter nor digit (http_cgi.c):
// what differs in these only is one header to them.
func Plain(to []byte, name string) []byte {
	for i := range min(len(name), cap(to)) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		case !('a' <= c && c <= 'z') && !('0' <= c && c <= '9'):
			c = '-'
		}
		to = append(to, c)
	}
	return to
}
