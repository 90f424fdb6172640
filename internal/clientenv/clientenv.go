// Package clientenv has the environment variables that make clients use a gate, and quotes them for shells.
package clientenv

import (
	"fmt"
	"net"
	"strings"

	"robotsgate/internal/ca"
)

// A Variable is an environment variable for clients.
type Variable struct{ Name, Value string }

// Variables are set in their order.
type Variables []Variable

// For returns the variables that clients need. Many clients read one case of a name
// only. Clients that read a bundle use it in place of their own roots.
func For(proxy string, files ca.ClientFiles) (all Variables) {
	set := func(value string, names ...string) {
		for _, name := range names {
			all = append(all, Variable{name, value})
		}
	}
	set(proxy, "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
	set("localhost,127.0.0.1,::1", "no_proxy", "NO_PROXY")
	set("1", "NODE_USE_ENV_PROXY")
	set(files.Cert, "NODE_EXTRA_CA_CERTS")
	set(files.Bundle, "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
		"PIP_CERT", "HTTPLIB2_CA_CERTS", "PERL_LWP_SSL_CA_FILE",
		"npm_config_cafile") // takes precedence over the cafile of an .npmrc, which makes npm ignore NODE_EXTRA_CA_CERTS
	set(files.Wgetrc, "SYSTEM_WGETRC", "SYSTEM_WGET2RC") // ~/.wgetrc stays in force
	return all
}

// Lines returns a line for each variable: format with its name, and its value as quote returns it.
func (v Variables) Lines(format string, quote func(string) string) (all []string) {
	for _, x := range v {
		all = append(all, fmt.Sprintf(format, x.Name, quote(x.Value)))
	}
	return all
}

// Environ returns the variables for the environment of a process.
func (v Variables) Environ() []string {
	return v.Lines("%s=%s", func(value string) string { return value })
}

// Line returns one line for a POSIX shell that sets all variables.
func (v Variables) Line() string {
	return "export " + strings.Join(v.Lines("%s=%s", QuoteShell), " ")
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+="

func QuoteShell(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func QuoteFish(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// QuotePowerShell doubles every character that PowerShell takes for a single quote, which
// includes typographic quotes.
func QuotePowerShell(s string) string {
	double := strings.NewReplacer("'", "''", "\u2018", "\u2018\u2018", "\u2019", "\u2019\u2019", "\u201a", "\u201a\u201a", "\u201b", "\u201b\u201b")
	return "'" + double.Replace(s) + "'"
}

// Dialable returns the address to connect to for an address to listen on.
func Dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// WithPlaceholder returns a proxy's URL with USER:PASSWORD in place of a login, whose password is
// not known, or not to be shown.
func WithPlaceholder(proxy string) string {
	return strings.Replace(proxy, "://", "://USER:PASSWORD@", 1)
}
