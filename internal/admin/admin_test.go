package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/internal/store/storetest"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

// An origin answers for every host, and counts the fetches.
type origin struct {
	queues  func() []pace.Queue // of the pacer; nil: there is no pace
	fleet   func() fleet.Status // nil: there is none
	log     func() audit.Status // the audit log; nil: there is none
	status  int
	body    string
	fetches int64

	crawlers []*policy.Crawler // of the gate
	refuse   bool              // unknown clients
	seen     *Overview
	alerts   []Alert
	store    snapshot.Store
	past     []Past
}

// overview returns the gate's overview, an empty one unless a test sets it.
func (o *origin) overview() *Overview {
	if o.seen == nil {
		o.seen = NewOverview()
	}
	return o.seen
}

func (o *origin) ready() error {
	if o.status == 0 {
		return errors.New("there is no origin\u202e")
	}
	return nil
}

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	atomic.AddInt64(&o.fetches, 1)
	return &http.Response{StatusCode: o.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(o.body)), Request: r}, nil
}

const rules = "User-agent: *\nDisallow: /private/\nDisallow: /p\n\nUser-agent: foobot\nDisallow: /foo\n"

// listener returns the admin handler of a gate that reaches this origin.
func listener(t *testing.T, o *origin) http.Handler {
	t.Helper()
	engine, err := policy.New(policy.Config{
		Crawlers:  policy.Crawlers{Known: o.crawlers, Default: &policy.Crawler{Name: "default", Mode: policy.Enforce}, RefuseUnknown: o.refuse},
		Robots:    policy.Robots{Settings: snapshot.Settings{MaxAge: 24 * time.Hour, StaleFor: 720 * time.Hour, Timeout: time.Minute, MaxBytes: 1 << 20, MaxRedirects: 5, CacheBytes: 1 << 20}},
		Transport: o,
		Store:     cmp.Or[snapshot.Store](o.store, storetest.NewMap()),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics") })
	return New(Options{
		Engine: engine, Overview: o.overview(), Metrics: metrics, Ready: o.ready, Config: Config{Hosts: []string{"ops.example"}},
		Version: "v1", Proxy: "http://192.0.2.1:9309",
		Connections: func() Connections { return Connections{Open: 3, Tunnels: 2} },
		History:     func(string) ([]Past, error) { return o.past, nil },
		Alerts:      func() []Alert { return o.alerts },
		Queues:      o.queues,
		Fleet:       o.fleet,
		Evidence:    o.log,
		Sizes:       func() []Size { return []Size{{"Rules in memory", "origins", 12, 2048, 1 << 20}} },
	})
}

// ask sends a request to 192.0.2.1:9310.
func ask(h http.Handler, method, host, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://192.0.2.1:9310"+path, nil)
	r.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	local := net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9310}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &local)))
	return w
}

// answers sends a request, and returns the JSON.
func answers(t *testing.T, h http.Handler, method, path string) map[string]any {
	t.Helper()
	w := ask(h, method, "192.0.2.1:9310", path)
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return got
}

func TestHosts(t *testing.T) {
	h := listener(t, &origin{status: 200, body: rules})
	for host, own := range map[string]bool{
		"192.0.2.1:9310":          true,
		"192.0.2.1":               true,
		"[::ffff:192.0.2.1]:9310": true,
		"localhost:9310":          true,
		"LOCALHOST.":              true,
		"ops.example":             true,
		"Ops.Example:80":          true,
		"192.0.2.2:9310":          false,
		"127.0.0.1:9310":          false,
		"192.0.2.1:9310:9310":     false,
		"ops.example@evil":        false,
		"evil.localhost":          false,
		"localhost.evil.example":  false,
		"3221225985":              false,
		"evil.example":            false,
		"192.0.2.1.evil.example":  false,
		"ops.example.evil":        false,
		"":                        false,
	} {
		for _, path := range []string{"/", "/?url=http://a.example/", "/live", "/style.css", "/page.js", "/icon.svg",
			"/api/overview", "/api/decision?url=http://a.example/", "/healthz", "/readyz", "/metrics"} {
			want := http.StatusOK
			if !own && !slices.Contains([]string{"/healthz", "/readyz", "/metrics"}, path) {
				want = http.StatusForbidden
			}
			if w := ask(h, "GET", host, path); w.Code != want {
				t.Errorf("Host: %s, %s: got %d, want %d", host, path, w.Code, want)
			}
		}
	}
}

func TestMethods(t *testing.T) {
	h := listener(t, &origin{status: 200, body: rules})
	const of = "?origin=http://a.example"
	for _, test := range []struct {
		method, path string
		want         int
		header       []string
	}{
		{"GET", "/api/refresh" + of, http.StatusMethodNotAllowed, nil},
		{"POST", "/api/refresh" + of, http.StatusOK, nil},
		{"POST", "/api/robots" + of, http.StatusMethodNotAllowed, nil},
		{"POST", "/api/decision?url=http://a.example/", http.StatusMethodNotAllowed, nil},
		{"DELETE", "/healthz", http.StatusMethodNotAllowed, nil},
		{"HEAD", "/healthz", http.StatusOK, nil},
		{"GET", "/nothing", http.StatusNotFound, nil},
		{"GET", "/api/nosuch", http.StatusNotFound, nil},
		{"GET", "/api/robots", http.StatusBadRequest, nil},
		{"POST", "/api/refresh?origin=nonsense", http.StatusBadRequest, nil},
		{"GET", "/api/decision?url=nonsense", http.StatusBadRequest, nil},
		{"GET", "/api/decision?url=http://a.example/&crawler=unknown", http.StatusBadRequest, nil},
		{"GET", "/api/decision?url=http://a.example/&token=NewsBot/1.0", http.StatusOK, nil},
		{"GET", "/?url=nonsense", http.StatusBadRequest, nil},
		{"POST", "/", http.StatusMethodNotAllowed, nil},
		{"HEAD", "/", http.StatusOK, nil},
		{"GET", "/api/robots?origin=http://unknown.example", http.StatusNotFound, nil},
		// Another site's page can send a POST, but the browser states its site.
		{"POST", "/api/refresh" + of, http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site"}},
		{"POST", "/api/refresh" + of, http.StatusForbidden, []string{"Origin", "http://evil.example"}},
		{"POST", "/api/refresh" + of, http.StatusOK, []string{"Sec-Fetch-Site", "same-origin"}},
	} {
		if w := ask(h, test.method, "192.0.2.1:9310", test.path, test.header...); w.Code != test.want {
			t.Errorf("%s %s %v: got %d, want %d", test.method, test.path, test.header, w.Code, test.want)
		}
	}
}

func TestReady(t *testing.T) {
	o := &origin{}
	h := listener(t, o)
	if w := ask(h, "GET", "lb.example", "/readyz"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "not ready: there is no origin\\u202e\n" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
	has(t, see(t, h, "/"), "Not ready", `there is no origin\u202e`)
	if got := answers(t, h, "GET", "/api/overview"); got["ready"] != false || got["not_ready"] != "there is no origin\u202e" {
		t.Errorf("the API answers %v, %v", got["ready"], got["not_ready"])
	}
	o.status = 200
	if w := ask(h, "GET", "lb.example", "/readyz"); w.Code != http.StatusOK || w.Body.String() != "ready\n" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}

func TestDecision(t *testing.T) {
	food := &policy.Crawler{Name: "food", Mode: policy.Report, Tokens: []string{"foobot"}, UserAgents: []glob.Glob{glob.Text("food*")}}
	h := listener(t, &origin{status: 200, body: rules, crawlers: []*policy.Crawler{food}})
	for query, want := range map[string]string{
		"url=http://a.example/private/x":                  "false line 2",
		"url=http://a.example/foo":                        "true line <nil>",
		"url=http://a.example/foo&agent=FooBot/1.0":       "false line 6",
		"url=http://a.example/foo&agent=FooBot/1&token=":  "false line 6",
		"url=http://a.example/foo&agent=FooBot/1&token=x": "true line <nil>",
		"url=http://a.example/foo&token=x&token=foobot":   "false line 6",
		"url=http://a.example/foo&crawler=food":           "false line 6",
		"url=http://a.example/foo&crawler=food&agent=x":   "false line 6",
		"url=http://a.example/foo&crawler=food&token=x":   "true line <nil>",
		"url=http://a.example/foo&crawler=default":        "true line <nil>",
	} {
		got := answers(t, h, "GET", "/api/decision?"+query)
		rule, _ := got["rule"].(map[string]any)
		if s := fmt.Sprintf("%v line %v", got["allowed"], rule["line"]); s != want {
			t.Errorf("%s: got %s, want %s", query, s, want)
		}
	}
}

// TestDecisionOfUnknown: a client that the gate refuses gets no decision, as from robotsgate check.
func TestDecisionOfUnknown(t *testing.T) {
	food := &policy.Crawler{Name: "food", Tokens: []string{"foobot"}, UserAgents: []glob.Glob{glob.Text("food*")}}
	h := listener(t, &origin{status: 200, body: rules, refuse: true, crawlers: []*policy.Crawler{food}})
	for query, decided := range map[string]bool{"": false, "&agent=x": false, "&token=": false, "&token=x": true, "&agent=food": true, "&crawler=food": true, "&crawler=default": true} {
		got := ask(h, "GET", "192.0.2.1:9310", "/api/decision?url=http://a.example/"+query)
		if (got.Code == http.StatusOK) != decided || strings.Contains(got.Body.String(), "name its crawler: food") == decided {
			t.Errorf("%q: got %d %s", query, got.Code, got.Body)
		}
	}
}

// TestRefreshFails: a fetch that brings no robots.txt does not replace the copy in force, and the answer says so.
func TestRefreshFails(t *testing.T) {
	o := &origin{status: 200, body: rules}
	h := listener(t, o)
	for _, status := range []int{200, 503, 404, 200} {
		o.status = status
		got := answers(t, h, "POST", "/api/refresh?origin=http://a.example")
		state, inForce, failed := "fresh", 200., any(nil)
		switch status {
		case 404:
			state, inForce = "unavailable", 404
		case 503:
			failed = 503.
		}
		answer, _ := got["failed"].(map[string]any)
		if got["state"] != state || got["status"] != inForce || answer["status"] != failed {
			t.Errorf("%d: got %v", status, got)
		}
	}
}

// TestRobots follows one origin as it changes.
func TestRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{status: 200, body: rules}
		h := listener(t, o)
		sum := snapshot.Digest(rules)
		const path = "?origin=http://a.example"
		for _, step := range []struct {
			name   string
			wait   time.Duration
			status int // of a refresh; 0: none
			want   map[string]any
		}{
			{"fetched", 0, 200, map[string]any{"state": "fresh", "age": 0., "status": 200., "sha256": sum, "fetched": "2000-01-01T00:00:00Z", "body": rules}},
			{"older", 90*time.Minute + time.Millisecond, 0, map[string]any{"state": "fresh", "age": 5400., "fetched": "2000-01-01T00:00:00Z", "body": rules}},
			{"to be fetched", 23 * time.Hour, 0, map[string]any{"age": 88200., "due": true}},
			{"down", 0, 503, map[string]any{"state": "stale", "age": 88200., "status": 200., "sha256": sum, "fetched": "2000-01-01T00:00:00Z", "body": rules, "due": nil}},
			{"gone", 0, 404, map[string]any{"state": "unavailable", "age": 0., "status": 404., "sha256": nil, "body": nil, "fetched": "2000-01-02T00:30:00Z"}},
		} {
			time.Sleep(step.wait) // fake clock
			if step.status != 0 {
				o.status = step.status
				answers(t, h, "POST", "/api/refresh"+path)
			}
			before := atomic.LoadInt64(&o.fetches)
			got := answers(t, h, "GET", "/api/robots"+path)
			for name, want := range step.want {
				if !reflect.DeepEqual(got[name], want) {
					t.Errorf("%s: %s is %v, want %v", step.name, name, got[name], want)
				}
			}
			if atomic.LoadInt64(&o.fetches) != before {
				t.Errorf("%s: the request has caused a fetch", step.name)
			}
			good := got["robots"].(map[string]any)["good"].(map[string]any)
			if good["fetched"] != "2000-01-01T00:00:00Z" || good["sha256"] != sum || good["lifetime"] != nil {
				t.Errorf("%s: robots.good is %v", step.name, good)
			}
		}
	})
}
