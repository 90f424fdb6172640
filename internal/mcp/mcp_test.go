package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"robotsgate/policy"
)

// An admin answers as the admin listener of a gate. A nil admin refuses connections.
type admin func(*http.Request) (status int, body string)

func (a admin) RoundTrip(r *http.Request) (*http.Response, error) {
	if a == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	status, body := a(r)
	switch status {
	case 0: // it accepts connections, and does not answer
		<-r.Context().Done()
		return nil, r.Context().Err()
	case -1: // it closes them
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// says is an admin with one answer.
func says(status int, body string) admin {
	return func(*http.Request) (int, string) { return status, body }
}

// A fakeLocal allows every URL.
type fakeLocal struct {
	checks atomic.Int32
	check  func(context.Context, Question) error // before the answer; nil: nothing
}

func (l *fakeLocal) Check(ctx context.Context, q Question) (*policy.Explanation, error) {
	l.checks.Add(1)
	if l.check != nil {
		if err := l.check(ctx, q); err != nil {
			return nil, err
		}
	}
	return &policy.Explanation{Allowed: true, Evidence: policy.Evidence{URL: q.URL, ProductToken: q.Token, Reason: policy.NoMatch}}, nil
}

// A served is a server and how it ended.
type served struct {
	local *fakeLocal
	in    *io.PipeWriter
	out   *io.PipeReader
	err   chan error // of Serve
}

// serve starts a server for a test.
func serve(t *testing.T, a admin, l *fakeLocal) *served {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &served{local: l, in: inW, out: outR, err: make(chan error, 1)}
	go func() {
		s.err <- Serve(t.Context(), inR, outW, Options{Version: "1", Admin: "http://127.0.0.1:9310", Transport: a, Local: l.Check})
		inR.Close()
		outW.Close()
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return s
}

// client returns a session of the SDK's client.
func (s *served) client(t *testing.T) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: s.out, Writer: s.in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// call returns the result of a tool as JSON, and its error. Every text must begin with the preface.
func call(t *testing.T, c *sdk.ClientSession, tool string, arguments any) (object map[string]any, problem string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	for _, content := range r.Content {
		text, ok := strings.CutPrefix(content.(*sdk.TextContent).Text, preface)
		if !ok {
			t.Errorf("%s %v: the text begins without the preface: %q", tool, arguments, content.(*sdk.TextContent).Text)
		}
		if strings.ContainsFunc(text, func(r rune) bool {
			return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f
		}) {
			t.Errorf("%s %v: the text has control characters: %q", tool, arguments, text)
		}
		if r.IsError {
			return nil, text
		}
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%s: %v in %s", tool, err, text)
		}
	}
	structured, _ := r.StructuredContent.(map[string]any)
	if fmt.Sprint(structured) != fmt.Sprint(object) {
		t.Errorf("%s: the structured content is %v, the text %v", tool, r.StructuredContent, object)
	}
	return object, ""
}

const denial = `{"url": "http://a.example/x", "allowed": false, "reason": "rule", "rule": {"line": 7, "text": "Disallow: /x\u001b[31m\u202e\u0085y"}, "group": "a\u200bb\u2066",
"product_token": "TestBot", "crawl_delay": 2.5, "robots": {"url": "http://a.example/robots.txt", "status": 200, "state": "fresh", "fetched": "2026-01-02T03:04:05Z", "age": 60},
"usage": [{"use": "search", "value": "n", "source": "content-usage", "in": "robots", "line": 3},
	{"use": "search", "value": "y", "source": "content-signal", "in": "robots", "line": 4}], "licenses": ["http://a.example/l"]}`

// TestCheck: the gate's decision has the rule and its line as flat members, without control and direction characters.
func TestCheck(t *testing.T) {
	var asked string
	c := serve(t, func(r *http.Request) (int, string) { asked = r.URL.String(); return 200, denial }, &fakeLocal{}).client(t)
	got, problem := call(t, c, "robots_check", checkArguments{"http://a.example/x?a&b", "TestBot", "TestBot/1 (x)"})
	if problem != "" || asked != "http://127.0.0.1:9310/api/decision?agent=TestBot%2F1+%28x%29&token=TestBot&url=http%3A%2F%2Fa.example%2Fx%3Fa%26b" {
		t.Errorf("asked %s, got %s", asked, problem)
	}
	want := map[string]any{"url": "http://a.example/x", "allowed": false, "reason": "rule", "rule": "Disallow: /x[31m y", "line": 7.0, "group": "ab", "product_token": "TestBot", "crawl_delay": 2.5, "usage": map[string]any{"search": "n"},
		"robots": map[string]any{"url": "http://a.example/robots.txt", "state": "fresh", "status": 200.0, "age": 60.0}, "decided_by": "the gate at http://127.0.0.1:9310"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestTools: the tools say that they change nothing.
func TestTools(t *testing.T) {
	c := serve(t, nil, &fakeLocal{}).client(t)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is not read-only", tool.Name)
		}
	}
}

// TestArguments: unknown arguments, wrong types and everything that no crawler can have are errors, and nothing is asked.
func TestArguments(t *testing.T) {
	local := &fakeLocal{}
	c := serve(t, nil, local).client(t)
	type m = map[string]any
	for _, q := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"robots_check", m{"url": "http://a.example/", "crawler": "x"}, "unexpected additional properties"},
		{"robots_check", m{"url": "http://a.example/", "x\u202e\x1b": 1}, "unexpected additional properties"},
		{"robots_check", m{"URL": "http://a.example/"}, "unexpected additional properties"},
		{"robots_check", m{}, "url"},
		{"robots_check", nil, "url"},
		{"robots_check", m{"url": 1}, "type"},
		{"robots_check", m{"url": []string{"http://a.example/"}}, "type"},
		{"robots_check", m{"url": "http://a.example/", "token": m{}}, "type"},
		{"robots_check", m{"url": "http://a.example/", "token": "a\r\nb"}, `token: "a\r\nb" is not a product token`},
		{"robots_check", m{"url": "http://a.example/" + strings.Repeat("a", 16<<10)}, "the arguments have 16"},
		{"robots_check", m{"url": "http://a.example/", "token": "secret of the user"}, `token: "secret of the user" is not a product token`},
		{"robots_explain", m{}, "give id, or url"},
		{"robots_explain", m{"id": "A1", "url": "http://a.example/"}, "give id, or url"},
		{"robots_explain", m{"id": 1}, "type"},
		{"robots_explain", m{"id": "A1", "token": "x"}, "unexpected additional properties"},
	} {
		if got, problem := call(t, c, q.tool, q.arguments); !strings.Contains(problem, q.want) {
			t.Errorf("%s %.60v: got %v, %q, want %q", q.tool, q.arguments, got, problem, q.want)
		}
	}
	if n := local.checks.Load(); n != 0 {
		t.Errorf("%d questions were answered", n)
	}
}

// TestNoGate: where no gate runs the configuration decides.
func TestNoGate(t *testing.T) {
	local := &fakeLocal{}
	c := serve(t, nil, local).client(t)
	if got, problem := call(t, c, "robots_check", checkArguments{URL: "http://a.example/"}); got["allowed"] != true ||
		got["decided_by"] != "robotsgate mcp by its own configuration, since no gate answers at http://127.0.0.1:9310" {
		t.Errorf("got %v, %s", got, problem)
	}
	if _, problem := call(t, c, "robots_explain", explainArguments{ID: "A1"}); !strings.HasPrefix(problem, "no gate answers at http://127.0.0.1:9310: ") {
		t.Errorf("got %s", problem)
	}
}

// TestGateDecides: after every other failure of a gate, or of what answers in its place, there is no other decision.
func TestGateDecides(t *testing.T) {
	for name, a := range map[string]admin{
		"not allowed":      says(200, denial),
		"a mistake":        says(400, `{"error": "url: x\u202e"}`),
		"no page":          says(404, "404 page not found"),
		"another program":  says(200, "<html>"),
		"other JSON":       says(200, `{"ok": true}`),
		"no object":        says(200, `[]`),
		"null":             says(200, `{"allowed": null}`),
		"another type":     says(200, `{"allowed": "yes"}`),
		"another status":   says(500, `{"allowed": true}`),
		"a redirect":       says(302, ""),
		"nothing":          says(200, ""),
		"without an end":   says(200, `{"allowed": true, "note": "`+strings.Repeat("a", 2*maxAnswer)+`"}`),
		"does not answer":  says(0, ""),
		"hangs up":         says(-1, ""),
		"a deep structure": says(200, strings.Repeat("[", maxAnswer)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local := &fakeLocal{}
				s := serve(t, a, local)
				c := s.client(t)
				begin := time.Now()
				got, problem := call(t, c, "robots_check", checkArguments{URL: "http://a.example/"})
				if got["allowed"] == true || got == nil && problem == "" {
					t.Errorf("got %v, %q", got, problem)
				}
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("it took %v", took)
				}
				if _, problem := call(t, c, "robots_explain", explainArguments{ID: "A1"}); problem == "" {
					t.Error("there is an explanation")
				}
				if n := local.checks.Load(); n != 0 {
					t.Errorf("%d questions were answered without the gate", n)
				}
				c.Close()
				<-s.err
			})
		})
	}
}

// TestCrawler: all questions are about the crawler that the operator names.
func TestCrawler(t *testing.T) {
	var asked []string
	a := admin(func(r *http.Request) (int, string) {
		asked = append(asked, r.URL.RawQuery)
		return 200, `{"url": "http://a.example/", "allowed": true, "reason": "no-match", "product_token": "NewsBot"}`
	})
	local := &fakeLocal{}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go Serve(t.Context(), inR, outW, Options{Admin: "http://127.0.0.1:9310", Transport: a, Local: local.Check, Crawler: "news"})
	c := (&served{in: inW, out: outR}).client(t)
	_, _ = call(t, c, "robots_check", checkArguments{URL: "http://a.example/"})
	if want := "crawler=news&url=http%3A%2F%2Fa.example%2F"; len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %q", asked)
	}
}

// TestExplain: the gate's answer is passed on, bounded and without control characters.
func TestExplain(t *testing.T) {
	var asked []string
	c := serve(t, func(r *http.Request) (int, string) {
		asked = append(asked, r.URL.RequestURI())
		if r.URL.Query().Get("id") == "B2" {
			return 404, `{"error": "none of the last 1000 refusals"}`
		}
		return 200, `{"id": "A1", "why": "line\u001b\u202e", "client": "192.0.2.7", "change": "do", "override": "- {}", "url": "` + strings.Repeat("a", 2*maxText) + `", "\u0007x": [{"y": "\u009b"}]}`
	}, &fakeLocal{}).client(t)
	got, problem := call(t, c, "robots_explain", explainArguments{URL: "http://a.example/"})
	url, _ := got["url"].(string)
	if got["client"] != nil || got["why"] != "line" || got["change"] != "do" || got["override"] != "- {}" || len(url) != 2000+len("…") || fmt.Sprint(got["x"]) != "[map[y:]]" {
		t.Errorf("got %v, %s", got, problem)
	}
	if _, problem := call(t, c, "robots_explain", explainArguments{ID: "B2"}); problem != "none of the last 1000 refusals" {
		t.Errorf("got %s", problem)
	}
	if fmt.Sprint(asked) != "[/api/refusal?url=http%3A%2F%2Fa.example%2F /api/refusal?id=B2]" {
		t.Errorf("asked %v", asked)
	}
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// TestMessages: a message has at most 1 MiB. One that is longer, or that can't be read, ends the session with an error,
// after the answers to those before it.
func TestMessages(t *testing.T) {
	check := func(url string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"robots_check","arguments":{"url":"` + url + `"}}}` + "\n"
	}
	short := check("http://a.example/")
	for _, c := range []struct {
		name, message string
		ends          bool
	}{
		{"short", short, false},
		{"1 MiB", check(strings.Repeat("a", 1<<20-2*len(short))), false},
		{"2 MiB", check(strings.Repeat("a", 2<<20)), true},
		{"2 MiB in lines", strings.Replace(short, "{", "{"+strings.Repeat("\n", 2<<20), 1), true},
		{"no JSON", "x\n", true},
		{"a part", `{"jsonrpc`, true},
		{"no message", `{"a": 1}` + "\n", true},
		{"no object", "[]\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := Serve(t.Context(), strings.NewReader(hello+c.message), &out, Options{Transport: admin(nil), Local: (&fakeLocal{}).Check})
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			last := lines[len(lines)-1]
			if len(lines) != 2 || (err != nil) != c.ends || strings.Contains(last, `"id":null`) != c.ends || !c.ends && !strings.Contains(last, `"result"`) {
				t.Errorf("%v after %.300s", err, out.String())
			}
			for _, line := range lines {
				if !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %.300s", line)
				}
			}
		})
	}
}

// calls returns so many calls.
func calls(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"robots_check","arguments":{"url":"http://a.example/%[1]d"}}}`+"\n", i+2)
	}
	return b.String()
}

// TestManyAtOnce: all calls are answered before the server ends, also if the input ends first, and no more than maxCalls
// are in progress at once.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		local := &fakeLocal{check: func(context.Context, Question) error {
			n := now.Add(1)
			defer now.Add(-1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
			time.Sleep(time.Second) // fake clock
			return nil
		}}
		var out strings.Builder
		if err := Serve(t.Context(), strings.NewReader(hello+calls(200)), &out, Options{Transport: admin(nil), Local: local.Check}); err != nil {
			t.Error(err)
		}
		for i := range 200 {
			if n := strings.Count(out.String(), fmt.Sprintf(`"url":"http://a.example/%d"`, i+2)); n != 1 {
				t.Errorf("call %d has %d results", i, n)
			}
		}
		if n := most.Load(); n != 16 {
			t.Errorf("%d calls were in progress at once", n)
		}
	})
}

// TestSameID: a client that uses an id twice does not make the server wait for an answer that it never sends.
func TestSameID(t *testing.T) {
	twice := strings.Repeat(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"robots_check","arguments":{"url":"http://a.example/"}}}`+"\n", 3*maxCalls)
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		local := &fakeLocal{check: func(context.Context, Question) error { time.Sleep(time.Second); return nil }} // fake clock
		if err := Serve(t.Context(), strings.NewReader(hello+twice), &out, Options{Transport: admin(nil), Local: local.Check}); err != nil {
			t.Error(err)
		}
	})
}

// A silent input has no end.
type silent struct{}

func (silent) Read([]byte) (int, error) { select {} }

// TestClientVanishes: after the client has left in the middle of calls, the server ends, whichever of its pipes it has
// closed.
func TestClientVanishes(t *testing.T) {
	for name, rest := range map[string]io.Reader{"both": strings.NewReader(""), "its input": silent{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local := &fakeLocal{check: func(ctx context.Context, _ Question) error { <-ctx.Done(); return ctx.Err() }}
				outR, outW := io.Pipe()
				ended := make(chan error)
				go func() {
					ended <- Serve(t.Context(), io.MultiReader(strings.NewReader(hello+calls(3*maxCalls)), rest), outW, Options{Transport: admin(nil), Local: local.Check})
				}()
				line := make([]byte, 10)
				_, _ = outR.Read(line)
				go func() { _, _ = io.Copy(io.Discard, outR) }()
				synctest.Wait()
				outR.Close()
				begin := time.Now()
				<-ended
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("the server ended after %v", took)
				}
			})
		})
	}
}

// TestCancelled: a call that the client gives up ends at once.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		local := &fakeLocal{check: func(ctx context.Context, _ Question) error {
			<-ctx.Done()
			ended.Store(true)
			return ctx.Err()
		}}
		s := serve(t, nil, local)
		c := s.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "robots_check", Arguments: checkArguments{URL: "http://a.example/"}}); err == nil {
			t.Error("there is an answer")
		}
		synctest.Wait()
		if !ended.Load() {
			t.Error("the call goes on")
		}
		c.Close()
		<-s.err
	})
}
