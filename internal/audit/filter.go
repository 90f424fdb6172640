package audit

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy/canonical"
	"robotsgate/policy/glob"
)

// A Filter selects entries: those that fit all of its members. The zero Filter selects all.
type Filter struct {
	ID      string
	Gate    string // the id of a gate, or [NoGate]
	URL     *URLPattern
	Host    *HostPattern
	Crawler string    // the name of a crawler, or [NoCrawler]
	Reason  string    // the reason of a decision, the kind of a refusal without one, or [NoDecision]
	Since   time.Time // the request arrived at this time or later; zero: at any time
	Until   time.Time // the request arrived before this time; zero: at any time
	Denied  bool      // the request was denied, or would have been without report mode
}

// The names under which a [Summary] counts entries without a gate, a crawler or a decision.
const (
	NoGate     = "(unknown)" // entries of an earlier version
	NoCrawler  = "(none)"
	NoDecision = "no decision"
)

// Selects reports whether the entry fits.
func (f *Filter) Selects(r *record.Record) bool {
	return (f.ID == "" || strings.EqualFold(f.ID, r.ID)) &&
		(f.Gate == "" || strings.EqualFold(f.Gate, gateName(r))) &&
		(f.Crawler == "" || f.Crawler == crawlerName(r)) &&
		(f.Reason == "" || f.Reason == reasonName(r)) &&
		(!f.Denied || r.Denied() || r.Reported()) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until)) &&
		(f.Host == nil || f.Host.matches(r.Origin)) &&
		(f.URL == nil || f.URL.matches(r))
}

func gateName(r *record.Record) string { return cmp.Or(r.Gate, NoGate) }

func crawlerName(r *record.Record) string { return cmp.Or(r.Crawler, NoCrawler) }

func reasonName(r *record.Record) string { return cmp.Or(string(r.Refused), r.Reason, NoDecision) }

// A HostPattern matches the host of a URL.
type HostPattern struct {
	host glob.Glob
	port string // empty: any
}

// ParseHostPattern parses a host such as *.shop.example or shop.example:8443, in which * stands for
// any characters.
func ParseHostPattern(text string) (*HostPattern, error) {
	name, port := canonical.SplitPort(text)
	if strings.Trim(port, "0123456789") != "" || strings.Contains(name, ":") && name[0] != '[' {
		name, port = text, "" // not a port: the end of an IPv6 address, or a mistake
	}
	host, err := glob.Host(name)
	if err != nil {
		return nil, err
	}
	return &HostPattern{host, port}, nil
}

func (p *HostPattern) matches(origin string) bool {
	scheme, authority, ok := strings.Cut(origin, "://")
	if !ok {
		return false
	}
	host, port := canonical.SplitPort(authority)
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return (p.port == "" || p.port == port) && p.host.Match(strings.Trim(host, "[]"))
}

// A URLPattern matches whole URLs.
type URLPattern struct {
	url      glob.Glob
	redacted glob.Glob // for entries without the values of their query
}

var errNoURL = errors.New("expected a URL such as https://shop.example/private/*, in which * stands for any characters")

// ParseURLPattern parses a URL, with or without its scheme, in which * stands for any characters. The
// case of letters does not count.
func ParseURLPattern(text string) (*URLPattern, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "*", text
	}
	if rest == "" || strings.HasPrefix(rest, "/") {
		return nil, fmt.Errorf("%w; got %q", errNoURL, text)
	}
	scheme = strings.ToLower(scheme)
	// Entries have canonical URLs, or what the client sent if that is not a URL.
	if t, err := canonical.ReadURL(strings.Replace(scheme, "*", "http", 1) + "://" + rest); err == nil {
		rest = t.Host + t.Path
	}
	text = scheme + "://" + rest
	return &URLPattern{glob.Text(text), glob.Text(record.Redact(text))}, nil
}

func (p *URLPattern) matches(r *record.Record) bool {
	url := r.URL
	if r.Origin != "" {
		url = r.Origin + cmp.Or(r.Path, "/")
	}
	return p.url.Match(url) || r.Redacted && p.redacted.Match(url)
}
