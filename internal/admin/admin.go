// Package admin is the listener for operators and their tools: health, metrics,
// a page that shows what goes on, and what is known and decided about an origin.
package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"robotsgate/internal/escape"
	"robotsgate/internal/overview"
	"robotsgate/policy"
)

// Options are what the listener answers from.
type Options struct {
	Engine   *policy.Engine
	Overview *overview.Overview
	Metrics  http.Handler
	Ready    func() error // why no request is served now, nil if they are
	Hosts    []string     // further names under which the page and the API may be asked
	Version  string
	Proxy    string // the gate's own URL, for people who have not used it yet

	Connections func() Connections
	Sizes       func() []Size
	// History returns what an origin has answered, the oldest first; nil: it is not kept.
	History func(origin string) ([]Past, error)
}

// New returns the handler. Health and metrics answer under any name; the rest
// only under the listener's own, since a page of a hostile site could reach it
// through a name that it lets resolve to this machine. What waits for an origin is
// given more time than the server's timeouts.
func New(o Options) http.Handler {
	a := &admin{Options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.health)
	mux.HandleFunc("GET /readyz", a.ready)
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /{$}", a.guarded(waits(a.page)))
	mux.HandleFunc("GET /live", a.own(a.live))
	for name, kind := range files {
		mux.HandleFunc("GET /"+name, a.guarded(file(name, kind)))
	}
	mux.HandleFunc("GET /favicon.ico", a.guarded(file("icon.svg", files["icon.svg"]))) // for what is not HTML
	mux.HandleFunc("GET /api/overview", a.own(a.overview))
	mux.HandleFunc("GET /api/decision", a.own(waits(a.decision)))
	mux.HandleFunc("GET /api/robots", a.own(a.robots))
	mux.HandleFunc("POST /api/refresh", a.own(waits(a.refresh)))
	return http.NewCrossOriginProtection().Handler(mux)
}

type admin struct {
	Options
	measured measured
}

func (a *admin) health(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (a *admin) ready(w http.ResponseWriter, _ *http.Request) {
	if err := a.Ready(); err != nil {
		http.Error(w, "not ready: "+escape.Printable(err.Error()), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// request is what a crawler with this User-Agent would ask, or with these
// product tokens in place of those that are configured for it.
func (a *admin) request(t policy.Target, agent string, tokens []string) policy.Request {
	crawler := a.Engine.Crawlers().Identify(policy.Client{UserAgent: agent})
	return policy.Request{Target: t, Crawler: as(crawler, tokens), UserAgent: agent}
}

func answer(w http.ResponseWriter, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // nothing here is HTML, and URLs have an &
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(escape.JSON(b.Bytes())) // the client left
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]string{"error": text}) // strings can be encoded
	_, _ = w.Write(escape.JSON(b.Bytes()))           // the client left
}
