package snapshot

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestVaries(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  bool
	}{
		{nil, false},
		{[]string{"Vary: Accept-Encoding"}, false},
		{[]string{"Vary: User-Agents, X-User-Agent"}, false},
		{[]string{"Vary:"}, false},
		{[]string{"Vary: User-Agent"}, true},
		{[]string{"Vary: user-agent"}, true},
		{[]string{"vary: USER-AGENT"}, true},
		{[]string{"Vary: Accept-Encoding,User-Agent , Cookie"}, true},
		{[]string{"Vary: Accept-Encoding", "Vary: \tUser-Agent"}, true},
		{[]string{"Vary: Accept-Encoding", "Vary: Cookie"}, false},
		{[]string{"Vary: Signature-Agent"}, true},
		{[]string{"Vary: Accept, signature-input"}, true},
		{[]string{"Vary: Signature"}, true},
		{[]string{"Vary: Accept-Signature, Signature-Key"}, false},
		{[]string{"Vary: *"}, true},
		{[]string{"Vary: Cookie,*"}, true},
		{[]string{"Vary: a*"}, false},
		{[]string{"Vary: " + strings.Repeat(",", 100_000) + "User-Agent"}, true},
	} {
		h := http.Header{}
		for _, line := range test.lines {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		if got := varies(h); got != test.want {
			t.Errorf("%.100q: got %v", test.lines, got)
		}
	}
}

// varying returns a response with a Vary of User-Agent.
func varying(response string) string {
	head, body, _ := strings.Cut(response, "\n\n")
	return head + "\nVary: Accept-Encoding, user-agent\n\n" + body
}

var (
	variedAllow = varying(allowAll)
	variedDeny  = varying(denyAll)
)

// TestVary: an answer that varies decides only for the crawler that it was fetched for, in any
// order of requests, in memory, after a restart and while the origin is down.
func TestVary(t *testing.T) {
	const none = "allow unavailable unavailable"
	for name, test := range map[string]struct{ evil, honest, evilWant, honestWant string }{
		"it opens":             {variedAllow, variedDeny, allowed, denied},
		"it closes":            {variedDeny, variedAllow, denied, allowed},
		"it has no file":       {varying("HTTP/1.1 404 Not Found\n\n"), variedDeny, none, denied},
		"it has none any more": {varying("HTTP/1.1 410 Gone\n\n"), variedDeny, none, denied},
		"it is refused":        {varying(forbidden), variedDeny, none, denied},
		"it fails":             {varying(unavailable), variedAllow, "deny unreachable unreachable", allowed},
		"it is cut short":      {"HTTP/1.1 200 OK\nVary: *\nContent-Length: 999\n\nUser-agent: *\n", variedAllow, "deny unreachable unreachable", allowed},
		"it goes in circles":   {"HTTP/1.1 302 Found\nVary: User-Agent\nLocation: /robots.txt\n\n", variedDeny, none, denied},
		"it is sent away":      {"HTTP/1.1 302 Found\nVary: User-Agent\nLocation: https://b.example/robots.txt\n\n", variedDeny, allowed, denied},
		"it is sent nowhere":   {"HTTP/1.1 302 Found\nVary: User-Agent\nLocation: https://c.example/robots.txt\n\n", variedAllow, "deny unreachable unreachable", allowed},
	} {
		for _, first := range []string{"Evil", "Honest"} {
			t.Run(name+", first "+first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, map[string]string{"Evil": test.evil, "Honest": test.honest})
					s.web.Serve("https://b.example/robots.txt", raw(allowAll))
					s.web.Serve("https://c.example/robots.txt", raw(""))
					pairs := []string{"Evil", test.evilWant, "Honest", test.honestWant}
					if first == "Honest" {
						pairs = append(pairs[2:], pairs[:2]...)
					}
					s.check("at first", pairs...)
					s.web.Fetched()
					s.check("in memory", pairs...)
					s.fetches("in memory", 0)
					s.restart()
					s.check("after a restart", "Honest", test.honestWant)
					s.fetches("after a restart", 0)
					s.check("after a restart", pairs...)
					time.Sleep(25 * time.Hour) // fake clock
					s.answers(map[string]string{"Evil": "", "Honest": "", "New": ""})
					s.check("down", "Honest", strings.Replace(test.honestWant, "fresh", "stale", 1), "New", "deny unreachable unreachable")
				})
			})
		}
	}
}

// TestVaryAppears on an origin with answers for all: these no longer decide, also not as
// stale copies. When it has gone again, one answer is for all.
func TestVaryAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": allowAll})
		s.check("shared", "Evil", allowed, "Honest", allowed, "Late", allowed)
		s.fetches("shared", 1)
		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Evil": variedAllow, "Honest": variedDeny, "Late": ""})
		s.check("it varies", "Evil", allowed, "Honest", denied, "Late", "deny unreachable unreachable")
		s.restart()
		s.check("restarted", "Late", "deny unreachable unreachable", "Evil", allowed, "Honest", denied)
		s.fetches("it varies", 3)

		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Evil": allowAll})
		s.check("no more", "Evil", allowed, "Honest", allowed, "Late", allowed)
		s.fetches("no more", 1)
		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Evil": "", "Honest": ""})
		s.check("down", "Evil", "allow rule stale", "Honest", "allow rule stale", "Late", "allow rule stale")
	})
}

// TestVaryOnFailure: a 5xx that varies does not invalidate the copy for all.
func TestVaryOnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Honest": denyAll})
		s.check("up", "Honest", denied)
		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Honest": varying(unavailable), "Late": varying(unavailable)})
		s.check("failing", "Honest", "deny rule stale", "Late", "deny rule stale")
	})
}

// TestVaryConfirms: a crawler's copy is confirmed by its own validators only, and a copy that was
// for all by none once the origin varies.
func TestVaryConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		vary, bodies := false, map[string]string{"Evil": "Allow: /", "Honest": "Allow: /"}
		var asked []string
		s.web.Serve(example, func(r *http.Request) (*http.Response, error) {
			name, _, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
			asked = append(asked, name+" "+r.Header.Get("If-None-Match"))
			head := ""
			if vary {
				head = "Vary: User-Agent\n"
			}
			// A faulty origin: it has one ETag for all variants of a day.
			if r.Header.Get("If-None-Match") == `"day"` {
				return raw("HTTP/1.1 304 Not Modified\n" + head + "\n")(r)
			}
			return raw("HTTP/1.1 200 OK\nETag: \"day\"\n" + head + "\nUser-agent: *\n" + bodies[name] + "\n")(r)
		})
		expect := func(when string, want ...string) {
			t.Helper()
			if fmt.Sprint(asked) != fmt.Sprint(want) {
				t.Errorf("%s: asked %q, want %q", when, asked, want)
			}
			asked = nil
		}
		s.check("for all", "Evil", allowed, "Honest", allowed)
		expect("for all", "Evil ")
		time.Sleep(25 * time.Hour) // fake clock
		s.check("confirmed", "Honest", allowed)
		expect("confirmed", `Honest "day"`)
		time.Sleep(25 * time.Hour) // fake clock
		vary, bodies["Honest"] = true, "Disallow: /"
		s.check("it varies", "Honest", denied, "Evil", allowed)
		expect("it varies", `Honest "day"`, "Honest ", "Evil ")
		time.Sleep(25 * time.Hour) // fake clock
		s.restart()
		s.check("own copies", "Evil", allowed, "Honest", denied)
		expect("own copies", `Evil "day"`, `Honest "day"`)
		s.check("own copies", "Evil", allowed, "Honest", denied)
		expect("nothing new")
		time.Sleep(25 * time.Hour) // fake clock
		vary = false               // the 304 lacks the Vary
		s.check("own copies", "Evil", allowed, "Honest", denied, "Evil", allowed)
		expect("own copies", `Evil "day"`, `Honest "day"`)
	})
}

// TestVaryManyTokens: a client that invents product tokens gets a bounded number of copies and
// fetches, which decide for these tokens only. Configured crawlers have their own all the same.
func TestVaryManyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.web.Serve(example, slow(time.Second, func(r *http.Request) (*http.Response, error) {
			rule := "Allow: /"
			if strings.HasPrefix(r.Header.Get("User-Agent"), "NewsBot") {
				rule = "Disallow: /"
			}
			return raw(varying("HTTP/1.1 200 OK\n\nUser-agent: *\n" + rule + "\n# " + r.Header.Get("User-Agent") + "\n"))(r)
		}))
		c := &concurrency{RoundTripper: s.web}
		s.engine.Close()
		config := s.config()
		config.Transport = c
		s.engine = engineWith(t, config, slices.Collect(maps.Values(s.known))...)
		verdicts := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				got := verdict(s.engine.Decide(t.Context(), asks(t, "https://example.com/page", bot(i%100))))
				mu.Lock()
				defer mu.Unlock()
				verdicts[got]++
			})
		}
		wg.Wait()
		if verdicts[allowed] != 160 || verdicts["deny unreachable unreachable"] != 840 {
			t.Errorf("got %v, want 16 of 100 tokens allowed", verdicts)
		}
		if n := len(s.web.Fetched()); n != 17 || c.most.Load() != maxConcurrentFetches {
			t.Errorf("%d fetches, %d at once, want 17, %d", n, c.most.Load(), maxConcurrentFetches)
		}
		s.check("configured crawlers", "NewsBot", denied)
		for day := range 30 {
			for i := range 40 {
				s.engine.Decide(t.Context(), asks(t, "https://example.com/page", bot(100*day+i)))
				time.Sleep(time.Minute) // fake clock
			}
			time.Sleep(25 * time.Hour) // fake clock
		}
		s.check("configured crawlers", "NewsBot", denied)
		set, _ := s.engine.Known(t.Context(), Scope{Origin: "https://example.com"})
		if n := len(set.Copies); n == 0 || n > maxBound {
			t.Errorf("%d copies are known, want %d at most", n, maxBound)
		}
		s.engine.Close() // no more writes to the store
		kept := 0
		for key := range s.disk.rows {
			if set, _ := s.disk.Load(t.Context(), key); ParseKey(key).Slot != "" && !ParseKey(key).Crawlers && !set.Empty() {
				kept++
			}
		}
		if kept != len(set.Copies) {
			t.Errorf("%d copies are stored, %d are known", kept, len(set.Copies))
		}
	})
}

// TestVaryMemory: copies that bind one token count within CacheBytes.
func TestVaryMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		robots := defaults()
		robots.CacheBytes = 1 << 20
		web := newOrigins()
		body := strings.Repeat("# a long line\n", 4_000)
		for i := range 10 {
			web.Serve(fmt.Sprintf("https://%d.example/robots.txt", i), func(r *http.Request) (*http.Response, error) {
				return raw(variedDeny + "# " + r.Header.Get("User-Agent") + "\n" + body)(r)
			})
		}
		e := engineFor(t, robots, web, newDurable(), io.Discard)
		for i := range 10 {
			for token := range 20 {
				d, err := e.Decide(t.Context(), asks(t, fmt.Sprintf("https://%d.example/", i), bot(token)))
				want := denied
				if token >= maxBound {
					want = "deny unreachable unreachable"
				}
				if got := verdict(d, err); got != want {
					t.Errorf("origin %d, token %d: got %q, want %q", i, token, got, want)
				}
			}
			time.Sleep(time.Second) // fake clock
			if size := e.Cached(); size.Bytes > size.Bound || size.Bytes < 1<<18 {
				t.Errorf("%d bytes in memory, %d are allowed", size.Bytes, size.Bound)
			}
		}
		web.Fetched()
		for i := range 10 {
			for token := range maxBound {
				if got := verdict(e.Decide(t.Context(), asks(t, fmt.Sprintf("https://%d.example/", i), bot(token)))); got != denied {
					t.Errorf("again: origin %d, token %d: got %q", i, token, got)
				}
			}
		}
		if n := len(web.Fetched()); n != 0 {
			t.Errorf("%d fetches for what the store has", n)
		}
	})
}

// TestVaryCopyLost: a copy that the store has lost is fetched anew, without validators; while
// the origin is down, everything is denied to its crawler.
func TestVaryCopyLost(t *testing.T) {
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, map[string]string{"Evil": variedAllow, "Honest": varying("HTTP/1.1 200 OK\nETag: \"x\"\n\nUser-agent: *\nDisallow: /\n")})
			s.check("before", "Evil", allowed, "Honest", denied)
			s.engine.Close()
			delete(s.disk.rows, Scope{Origin: "https://example.com", Slot: Slot("", []string{"honest"})}.Key())
			s.start()
			s.web.Fetched()
			want := denied
			if down {
				s.answers(map[string]string{"Evil": "", "Honest": ""})
				want = "deny unreachable unreachable"
			}
			s.check("lost", "Honest", want, "Evil", allowed, "Honest", want)
			s.fetches("lost", 1)
		})
	}
}

// TestVaryRenews: the copy of each crawler is renewed in the background before it ends, and no
// request waits for it.
func TestVaryRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": variedAllow, "Honest": variedDeny})
		s.check("before", "Evil", allowed, "Honest", denied)
		time.Sleep(23 * time.Hour) // fake clock
		s.answers(map[string]string{"Evil": variedDeny, "Honest": variedAllow})
		s.web.Fetched()
		for range 2 {
			begun := time.Now()
			for range 10 {
				s.engine.Decide(t.Context(), s.request("Evil"))
				s.engine.Decide(t.Context(), s.request("Honest"))
			}
			if took := time.Since(begun); took != 0 {
				t.Errorf("requests waited %v", took)
			}
			time.Sleep(2 * time.Second) // fake clock
		}
		s.fetches("renewed", 2)
		s.check("renewed", "Evil", denied, "Honest", allowed)
	})
}

// TestVaryOutages: outages have the crawlers that are concerned, and what each obeys.
func TestVaryOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Honest": variedDeny})
		s.check("up", "Honest", denied)
		time.Sleep(25 * time.Hour) // fake clock
		s.answers(map[string]string{"Honest": varying(unavailable), "NewsBot": varying(unavailable)})
		s.check("failing", "Honest", "deny rule stale", "NewsBot", "deny unreachable unreachable")
		var got []string
		for _, o := range s.engine.Outages() {
			got = append(got, fmt.Sprintf("%s %v %v %s", o.Origin, o.Crawlers, o.Tokens, o.State))
		}
		if want := "[https://example.com true [newsbot] unreachable https://example.com false [honest] stale]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestVaryRefresh: a refresh that names one crawler has the copies of the others fetched anew, too.
func TestVaryRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": variedAllow, "Honest": variedDeny, "NewsBot": variedDeny})
		s.check("before", "Evil", allowed, "Honest", denied, "NewsBot", denied)
		s.answers(map[string]string{"Evil": variedDeny, "Honest": variedAllow, "NewsBot": variedAllow})
		time.Sleep(time.Minute) // fake clock
		st, err := s.engine.Refresh(t.Context(), s.request("Evil"))
		if err != nil || st.State != Fresh || st.File == nil || !strings.Contains(st.File.Body(), "Disallow") {
			t.Errorf("got %+v, %v", st, err)
		}
		s.check("after", "Evil", denied, "Honest", allowed, "NewsBot", allowed)
		s.fetches("after", 6)
	})
}

// TestVaryEvidence: the evidence of a decision has the digest of the crawler's own copy, and decides the
// same again.
func TestVaryEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]string{"Evil": variedAllow, "Honest": variedDeny})
		for _, name := range []string{"Evil", "Honest"} {
			d, err := s.engine.Decide(t.Context(), s.request(name))
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(map[string]string{"Evil": variedAllow, "Honest": variedDeny}[name], "\n\n")
			if got := d.Robots.Snapshot; got.SHA256 != Digest(body) || d.Robots.File.Body() != body || d.Robots.Good != got || d.Robots.Answer != got {
				t.Errorf("%s: got %+v", name, d.Robots)
			}
		}
	})
}
