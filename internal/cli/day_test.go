package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
	"robotsgate/internal/gatetest"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/record"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
	"robotsgate/proxy"
)

const morning = `
data_dir: %s
crawlers:
- {name: news, user_agents: ["news*"], product_tokens: [NewsBot, ExampleBot]}
- {name: trial, user_agents: ["trial*"], product_tokens: [TrialBot], mode: report}
overrides:
- {hosts: ["3.example"], action: allow, reason: "until noon", expires: 2000-01-01T12:00:00Z}
- {hosts: ["*.example"], paths: ["/contract/"], crawlers: [news], action: deny, reason: "contract"}
robots: {max_age: 1h, stale_for: 3h, timeout: 5s}
log: {audit: %s}
`

const evening = `
data_dir: %s
crawlers:
- {name: news, user_agents: ["news*"], product_tokens: [NewsBot]}
- {name: trial, user_agents: ["trial*"], product_tokens: [TrialBot, NewsBot]}
overrides:
- {hosts: ["*.example"], paths: ["/a"], crawlers: [trial], action: allow, reason: "agreed", expires: 2000-01-01T20:30:00Z}
robots: {max_age: 2h, stale_for: 10m, after_stale: allow, timeout: 5s, unavailable: keep, too_many_requests: allow, keep: 876000h} # the day is in the year 2000
log: {audit: %s}
`

// A world is a set of origins that change their answers all day.
type world struct {
	mu    sync.Mutex
	moods map[string]*mood
	rand  *rand.Rand
}

type mood struct {
	until time.Time
	kind  int
	body  string
}

// refuse makes an origin that has had no request yet require a login, for the rest of the day.
func (w *world) refuse(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moods[host] = &mood{until: time.Now().Add(24 * time.Hour), kind: 8}
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "0.example" {
		return nil, proxy.ErrNoHost
	}
	w.mu.Lock()
	m := w.moods[r.URL.Host]
	if m == nil || time.Now().After(m.until) {
		m = &mood{until: time.Now().Add(time.Duration(w.rand.IntN(7200)) * time.Second), kind: w.rand.IntN(12), body: w.rules()}
		w.moods[r.URL.Host] = m
	}
	kind, body, wait, life := m.kind, m.body, time.Duration(w.rand.IntN(100))*time.Millisecond, time.Duration(w.rand.IntN(7200))*time.Second
	w.mu.Unlock()
	time.Sleep(wait) // fake clock
	rec := httptest.NewRecorder()
	switch kind {
	case 0:
		rec.WriteHeader(404)
	case 1:
		rec.WriteHeader(503)
	case 2:
		return nil, errors.New("connection refused")
	case 3:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case 4: // one is not welcome
		if strings.HasPrefix(r.UserAgent(), "news") {
			rec.WriteHeader(403)
			break
		}
		rec.WriteString(body)
	case 5:
		rec.WriteHeader(429)
	case 6: // changes at every fetch, which are near each other
		rec.Header().Set("Cache-Control", "no-store")
		fmt.Fprintf(rec, "User-agent: *\nDisallow: /%d\nAllow: /a\n", time.Now().UnixNano()%1000)
	case 7:
		rec.Header().Set("Location", "http://"+r.URL.Host+"/robots.txt")
		rec.WriteHeader(302)
	case 8:
		rec.WriteHeader(401)
	case 9:
		rec.Header().Set("ETag", `"`+snapshot.Digest(body)[:8]+`"`)
		if r.Header.Get("If-None-Match") == rec.Header().Get("ETag") {
			rec.WriteHeader(304)
			break
		}
		rec.WriteString(body)
	default:
		rec.Header().Set("Expires", time.Now().Add(life).UTC().Format(http.TimeFormat))
		rec.WriteString(body)
	}
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// rules returns a robots.txt.
func (w *world) rules() string {
	var b strings.Builder
	for _, name := range []string{"*", "NewsBot", "TrialBot", "ExampleBot"} {
		if w.rand.IntN(3) == 0 {
			continue
		}
		fmt.Fprintf(&b, "User-agent: %s\n", name)
		for range w.rand.IntN(4) {
			fmt.Fprintf(&b, "%s: /%c%s\n", []string{"Allow", "Disallow"}[w.rand.IntN(2)], 'a'+rune(w.rand.IntN(4)), []string{"", "*\xff", "/x", "*?q=1", "$"}[w.rand.IntN(5)])
		}
	}
	return b.String()
}

// dayGate is the id of the gate.
const dayGate = "dayofagate0123456789"

// A day is a gate without its sockets.
type day struct {
	t      *testing.T
	dir    string
	file   string
	web    *world
	store  *store.Disk
	engine *policy.Engine
	log    *audit.Log
	digest string
	key    *keyfile.Key
	rand   *rand.Rand
	id     int
	mu     sync.Mutex
}

func (d *day) configure(text string) policy.Config {
	c, err := gate.ParseConfig("gate.yaml", fmt.Appendf(nil, text, d.dir, d.file), os.LookupEnv)
	if err != nil {
		d.t.Fatal(err)
	}
	effective, err := c.Effective()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := store.KeepConfiguration(d.dir, effective); err != nil {
		d.t.Fatal(err)
	}
	d.digest = snapshot.Digest(string(effective))
	return gate.EngineConfig(c, d.web, d.store, slog.New(slog.DiscardHandler), nil)
}

var dayAgents = []string{"news/1", "trial/1", "curl/8", "Other/2 (+http://other.example)", "Mozilla/5.0", ""}

// request decides and records a request, as a proxy does.
func (d *day) request(engine *policy.Engine, digest string, at ...int) {
	d.mu.Lock()
	d.id++
	id, agent, host := d.id, dayAgents[d.rand.IntN(len(dayAgents))], d.rand.IntN(40)
	path := []string{"/", "/a", "/a/x", "/b?q=1", "/c/%FF", "/d", "/contract/1", "/robots.txt", "/a?k=v&w"}[d.rand.IntN(9)]
	whole := d.rand.IntN(10) == 0
	if d.rand.IntN(3) == 0 { // more names than an origin may answer one by one
		agent = fmt.Sprintf("Bot%c/1", 'A'+rune(d.rand.IntN(26)))
		host %= 4
	}
	if len(at) > 0 {
		host = at[0]
	}
	d.mu.Unlock()
	target, err := canonical.ParseURL(fmt.Sprintf("http://%d.example%s", host, path))
	if err != nil {
		d.t.Error(err)
		return
	}
	crawler := engine.Crawlers().Default
	for _, k := range engine.Crawlers().Known {
		if strings.HasPrefix(agent, k.Name) {
			crawler = k
		}
	}
	x := &record.Record{ID: fmt.Sprint(id), Time: time.Now(), Method: "GET", Origin: target.Origin(), Path: target.Path, Crawler: crawler.Name, Status: 200, Config: digest}
	decide := engine.Decide
	if whole {
		decide, x.Method, x.Path, x.Tunnel = engine.DecideHost, "CONNECT", "", true
	}
	decision, err := decide(context.Background(), policy.Request{Target: target, Crawler: crawler, UserAgent: agent})
	if err == nil {
		decision.Record(x)
	}
	x.Duration = time.Since(x.Time).Seconds()
	d.log.Write(x)
}

// live serves from midnight to midnight. The gate restarts once, and its configuration
// changes once.
func (d *day) live() {
	start := time.Now()
	open := func(text string) {
		var err error
		if d.store, err = store.Open(d.dir, store.Limits{Keep: 1000 * time.Hour, Bytes: 1 << 30}, slog.New(slog.DiscardHandler)); err != nil {
			d.t.Fatal(err)
		}
		if d.engine, err = policy.New(d.configure(text)); err != nil {
			d.t.Fatal(err)
		}
		o := audit.Options{Config: audit.Config{File: d.file, Keep: 3}, Evidence: evidence.Options{Name: "robotsgate/" + dayGate, Gate: dayGate, Key: d.key, Dir: d.dir}}
		if d.log, err = audit.Open(o, io.Discard, slog.New(slog.DiscardHandler)); err != nil {
			d.t.Fatal(err)
		}
	}
	shut := func() {
		d.engine.Close()
		d.store.Close()
		if err := d.log.Close(); err != nil {
			d.t.Fatal(err)
		}
	}
	open(morning)
	hour := func() int { return int(time.Since(start) / time.Hour) }
	for last := 0; hour() < 24; {
		if now := hour(); now != last {
			switch last = now; now {
			case 8:
				shut()
				open(morning)
			case 10: // more names than it may refuse one by one
				d.web.refuse("41.example")
				for range 300 {
					d.request(d.engine, d.digest, 41)
				}
			case 15:
				d.engine = d.engine.Reconfigured(d.configure(evening))
			}
		}
		// Sometimes one request follows the other before the first result is saved.
		n, again, host := d.rand.IntN(6), d.rand.IntN(20) == 0, d.rand.IntN(40)
		var burst sync.WaitGroup
		for range n {
			burst.Go(func() { d.request(d.engine, d.digest) })
		}
		if again {
			origin, err := canonical.ParseURL(fmt.Sprintf("http://%d.example/", host))
			if err != nil {
				d.t.Fatal(err)
			}
			burst.Go(func() {
				for range 3 {
					d.engine.Refresh(context.Background(), policy.Request{Target: origin, Crawler: d.engine.Crawlers().Default})
					d.request(d.engine, d.digest, host)
				}
			})
		}
		burst.Wait()
		time.Sleep(time.Duration(d.rand.IntN(80)) * time.Second) // fake clock
	}
	shut()
}

func TestMain(m *testing.M) { os.Exit(gatetest.InMemory(m)) }

// TestDay replays a day's traffic with origins that change their robots.txt, fail, forbid
// single crawlers and recover: nothing differs, and no evidence is gone. Then it changes
// the evidence, and detects that.
func TestDay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.jsonl")
	key, err := keyfile.Create(filepath.Join(dir, evidence.KeyFile))
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "gate-id"), []byte(dayGate), 0o600)); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const seed = 1
		d := &day{t: t, dir: dir, key: key, file: file, web: &world{moods: map[string]*mood{}, rand: rand.New(rand.NewPCG(seed, 1))}, rand: rand.New(rand.NewPCG(seed, 2))}
		d.live()
	})
	conf := filepath.Join(dir, "gate.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, evening, dir, file), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(a Audit) (out string, err error) {
		var b bytes.Buffer
		a.File, a.Configured = []string{file}, Configured{conf}
		err = a.Run(t.Context(), console.Streams{In: strings.NewReader(""), Out: &b, Err: &b})
		return b.String(), err
	}
	out, err := run(Audit{Replay: true, Verify: true})
	if err != nil || !strings.Contains(out, "0 differences, evidence gone: 0,") || !strings.Contains(out, "none changed, missing or added") {
		t.Fatalf("%v\n%s", err, out[:min(len(out), 4000)])
	}
	t.Log(out)
	summary, err := run(Audit{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(summary)
	for _, reason := range []string{"rule", "no-match", "no-group", "unavailable", "implicit", "unreachable", "override"} {
		if !strings.Contains(summary, "\n  "+reason+" ") {
			t.Errorf("the day had no decision %q", reason)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(summary, "\n  no decision ") {
		t.Error("the day had nothing that was not decided")
	}
	for _, state := range []string{`"state":"stale"`, `"looped":true`, `"instead_of"`, `"enforced":false`, `"method":"CONNECT"`} {
		if !bytes.Contains(data, []byte(state)) {
			t.Errorf("the day had no %s", state)
		}
	}

	// A record with another decision.
	changed := bytes.Replace(data, []byte(`"decision":"allow"`), []byte(`"decision":"deny"`), 1)
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(Audit{Replay: true, Verify: true}); err != console.Exit(1) || !strings.Contains(out, "1 difference,") || !strings.Contains(out, "a record has been changed") {
		t.Errorf("a changed record: %v\n%s", err, out[:min(len(out), 2000)])
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// A robots.txt with other contents.
	kept, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*_*"))
	for _, path := range kept {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.ReplaceAll(text, []byte("Disallow: /"), []byte("Disallow: *")), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(Audit{Replay: true}); err != console.Exit(1) || !strings.Contains(out, ", evidence changed: ") || !strings.Contains(out, "evidence changed, first ") {
		t.Errorf("a changed robots.txt: %v\n%s", err, out)
	}
}
