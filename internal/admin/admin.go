// Package admin is the listener for operators and their tools: health,
// metrics, and what is known and decided about an origin.
package admin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"robotsgate/policy"
)

// Options are what the listener answers from.
type Options struct {
	Engine  *policy.Engine
	Metrics http.Handler
	Ready   func() bool
	Hosts   []string // further names under which the API may be asked
	Version string
}

// New returns the handler. Health and metrics answer under any name; the rest
// only under the listener's own, since a page of a hostile site could reach it
// through a name that it lets resolve to this machine.
func New(o Options) http.Handler {
	a := &admin{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.health)
	mux.HandleFunc("GET /readyz", a.ready)
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /{$}", a.guarded(a.index))
	mux.HandleFunc("GET /api/decision", a.guarded(a.decision))
	mux.HandleFunc("GET /api/robots", a.guarded(a.robots))
	mux.HandleFunc("POST /api/refresh", a.guarded(a.refresh))
	return http.NewCrossOriginProtection().Handler(mux)
}

type admin struct{ Options }

func (a *admin) health(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (a *admin) ready(w http.ResponseWriter, _ *http.Request) {
	if !a.Ready() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// guarded admits requests that name the listener as it is known.
func (a *admin) guarded(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.ours(r) {
			fail(w, http.StatusForbidden, "this page is not served under the name "+r.Host+"; add it to admin.hosts if it is yours")
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		h(w, r)
	}
}

// ours reports whether a request names the listener.
func (a *admin) ours(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	if host == "localhost" || slices.ContainsFunc(a.Hosts, func(k string) bool { return strings.EqualFold(k, host) }) {
		return true
	}
	// The address that the connection came in at: a name can be made to resolve
	// to it, but then Host carries the name.
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	asked, askedErr := netip.ParseAddr(host)
	return err == nil && askedErr == nil && own.Addr().Unmap() == asked.Unmap()
}

func (a *admin) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, `robotsgate %s

/healthz                          is the process alive
/readyz                           does it take requests
/metrics                          for Prometheus
/api/decision?url=&agent=&token=  what would be decided, and why
/api/robots?origin=               the robots.txt that is in force
POST /api/refresh?origin=         fetch it anew
`, a.Version)
}

// decision answers as robotsgate check --json does.
func (a *admin) decision(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	target, err := policy.ReadURL(q.Get("url"))
	if err != nil {
		fail(w, http.StatusBadRequest, "url: "+err.Error())
		return
	}
	// token= names nobody: the agent's own token stays in force.
	tokens := slices.DeleteFunc(q["token"], func(token string) bool { return token == "" })
	ask := a.request(target, q.Get("agent"), tokens)
	d, err := a.Engine.Decide(r.Context(), ask)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	e := d.Explain(target.String())
	e.Lost = d.Lost(target)
	answer(w, e)
}

// request is what a crawler with this User-Agent would ask, or with these
// product tokens in place of those that are configured for it.
func (a *admin) request(t policy.Target, agent string, tokens []string) policy.Request {
	crawler := a.Engine.Crawlers().Identify(netip.Addr{}, agent)
	if len(tokens) > 0 {
		as := *crawler
		as.Tokens = tokens
		crawler = &as
	}
	return policy.Request{Target: t, Crawler: crawler, UserAgent: agent}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // nothing here is HTML, and URLs have an &
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client left
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
}
