// Package demo has the sample site of robotsgate demo, http://shop.example/ and https://shop.example/. The site needs no
// network: [Site] answers requests within the process.
package demo

// Where to change what.
//
//	a page of the site  a file in pages, in the folder of its host, and a link to it in
//	                    pages/shop.example/index.html

import (
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"robotsgate/proxy"
)

// Config is the configuration of the gate in front of the site.
//
//go:embed config.yaml
var Config []byte

// A Site is an http.RoundTripper that stands for all hosts below .example, a domain that no real host is in
// (RFC 2606). Hosts without pages have no address.
type Site struct {
	pages http.Handler
	hosts []string // with pages
}

// Has reports whether a site answers for a host, given in lower case.
func Has(host string) bool { return strings.HasSuffix(host, ".example") }

// RoundTrip answers a request for a host of the site. The body of the request is not read.
func (s *Site) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	host := r.URL.Hostname()
	if !slices.Contains(s.hosts, host) {
		return nil, fmt.Errorf("%w: %w", proxy.ErrNoHost, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	if port := r.URL.Port(); port != "" && port != "80" && port != "443" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	in := r.Clone(r.Context())
	in.Host, in.RequestURI, in.Body = host, r.URL.RequestURI(), http.NoBody
	w := recorder{header: http.Header{}}
	s.pages.ServeHTTP(&w, in)
	return w.response(r), nil
}
