package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"robotsgate/proxy/internal/sfv"
)

const (
	proxyStatus = "Proxy-Status" // RFC 9209
	gateName    = "robotsgate"   // the name of the gate's member
)

// dropOwn removes what only the gate may say: its own headers, and its members
// of Proxy-Status.
func dropOwn(h http.Header) {
	for name := range h {
		// Some read an underscore as a hyphen (RFC 3875, 4.1.18).
		if len(name) >= len(ownPrefix) && strings.EqualFold(strings.ReplaceAll(name[:len(ownPrefix)], "_", "-"), ownPrefix) {
			delete(h, name)
		}
	}
	if lines := h[proxyStatus]; len(lines) > 0 {
		if kept := othersStatus(lines); kept != "" {
			h[proxyStatus] = []string{kept}
		} else {
			delete(h, proxyStatus)
		}
	}
}

// othersStatus returns the members of a Proxy-Status that are not the gate's. A
// field that is not valid has no meaning (RFC 9651, 4.2) and is dropped.
func othersStatus(lines []string) string {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return ""
	}
	s, _ := httpsfv.Marshal(slices.DeleteFunc(list, func(m httpsfv.Member) bool {
		i, ok := m.(httpsfv.Item)
		return ok && (i.Value == httpsfv.Token(gateName) || i.Value == gateName)
	}))
	return s
}

// status sets the gate's member, the only one on a response of the gate itself.
func status(h http.Header, fault, details string) {
	f := sfv.New()
	f.Token(gateName)
	f.Param("error")
	f.Token(fault)
	if details != "" {
		f.Param("details")
		f.Quoted(ascii(details))
	}
	f.Set(h, proxyStatus)
}

// ascii makes text fit for a String, which RFC 9209, 2.1.4 asks for.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), sfv.MaxText)])
}
