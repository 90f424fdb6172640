// Package admin serves the admin listener: health, metrics, the status page, and an API for
// decisions and the robots.txt of an origin. [New] returns its handler. An [Overview] has the counters of the page.
package admin

// Where to change what.
//
//	the status page  page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/internal/logtext"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/pace"
)

// Options are the sources of the answers.
type Options struct {
	Engine   *policy.Engine
	Overview *Overview
	Metrics  http.Handler
	Ready    func() error // why requests are not served now; nil: they are
	Config   Config
	Version  string
	Proxy    string // the gate's own URL, for the instructions on the page

	Connections func() Connections
	Sizes       func() []Size
	Queues      func() []pace.Queue // the origins for which requests wait, those with the most first; nil: there is no pace
	Alerts      func() []Alert      // of the gate itself; nil: none
	Fleet       func() fleet.Status // nil: the gate is in none
	Evidence    func() audit.Status // nil: there is no audit log
	// History returns the answers of an origin, the oldest first; nil: they are not kept.
	History func(origin string) ([]Past, error)
}

// New returns the handler. It serves health and metrics for any Host, and the rest only for
// the listener's own: otherwise a hostile site's page could reach it through a host name that
// resolves to this machine (DNS rebinding). Handlers that wait for an origin extend the
// server's timeouts.
func New(o Options) http.Handler {
	a := &admin{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.health)
	mux.HandleFunc("GET /readyz", a.ready)
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /{$}", a.guarded(waiting(a.page)))
	mux.HandleFunc("GET /origin", a.sameOrigin(a.originPage))
	mux.HandleFunc("POST /origin", a.sameOrigin(waiting(a.refreshPage)))
	mux.HandleFunc("GET /live", a.sameOrigin(a.live))
	for name, kind := range files {
		mux.HandleFunc("GET /"+name, a.guarded(file(name, kind)))
	}
	mux.HandleFunc("GET /favicon.ico", a.guarded(file("icon.svg", files["icon.svg"]))) // requested for other responses than HTML
	program := func(method, path string, h http.HandlerFunc) {
		mux.HandleFunc(method+" "+path, a.sameOrigin(h))
		mux.HandleFunc(path, a.sameOrigin(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Replace(method, "GET", "GET, HEAD", 1))
			fail(w, http.StatusMethodNotAllowed, "this path takes "+method+" requests only")
		}))
	}
	program("GET", "/api/overview", api(a.overview))
	program("GET", "/api/decision", waiting(api(a.explain)))
	program("GET", "/api/refusal", api(a.refusal))
	program("GET", "/api/robots", api(a.robots))
	program("POST", "/api/refresh", waiting(api(a.refresh)))
	mux.HandleFunc("/api/", a.sameOrigin(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "the API has no such path")
	}))
	return a.noProxy(mux, http.NewCrossOriginProtection().Handler(mux))
}

type admin struct{ Options }

func (a *admin) health(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (a *admin) ready(w http.ResponseWriter, _ *http.Request) {
	if err := a.Ready(); err != nil {
		http.Error(w, "not ready: "+logtext.Printable(err.Error()), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// request returns the GET of a crawler with this User-Agent.
func (a *admin) request(t canonical.Target, agent string) policy.Request {
	return policy.Request{Target: t, Crawler: a.Engine.Crawlers().Identify(policy.Client{UserAgent: agent}), UserAgent: agent}
}

// api answers with what a function returns, as JSON. The status is that of an error.
func api[T any](f func(*http.Request) (v T, status int, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, status, err := f(r)
		if err != nil {
			fail(w, status, err.Error())
			return
		}
		send(w, http.StatusOK, v, "  ")
	}
}

func fail(w http.ResponseWriter, status int, text string) {
	send(w, status, map[string]string{"error": text}, "")
}

func send(w http.ResponseWriter, status int, v any, indent string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // URLs contain "&"
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(logtext.JSON(b.Bytes())) // the client may have disconnected
}
