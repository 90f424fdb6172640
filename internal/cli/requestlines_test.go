package cli

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/config"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
	"robotsgate/proxy"
)

// TestChooseRequestLines: an option precedes the key, and the key what a terminal shows by itself.
func TestChooseRequestLines(t *testing.T) {
	for _, test := range []struct {
		options    RequestLines
		key        string
		onTerminal bool
		want       config.Requests
	}{
		{RequestLines{}, "", false, config.NoRequests},
		{RequestLines{}, "", true, config.RefusedRequests},
		{RequestLines{}, "none", true, config.NoRequests},
		{RequestLines{}, "all", true, config.AllRequests},
		{RequestLines{}, "refused", false, config.RefusedRequests},
		{RequestLines{Quiet: true}, "all", false, config.NoRequests},
		{RequestLines{Quiet: true}, "", true, config.NoRequests},
		{RequestLines{Verbose: true}, "none", false, config.AllRequests},
		{RequestLines{Verbose: true}, "", true, config.AllRequests},
	} {
		text := ""
		if test.key != "" {
			text = "log: {requests: " + test.key + "}"
		}
		c, err := config.Parse("gate.yaml", []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := test.options.choose(c, test.onTerminal); got != test.want {
			t.Errorf("%+v, log.requests %q, on a terminal %v: got %s, want %s", test.options, test.key, test.onTerminal, got, test.want)
		}
	}
}

// at is when the requests of these tests began.
var at = time.Date(2026, 3, 4, 15, 4, 5, 0, time.Local)

func deniedRecord(enforced bool) *proxy.Record {
	x := &proxy.Record{
		ID: "ID", Start: at, Duration: time.Second, Client: netip.MustParseAddr("192.0.2.7"), Method: "GET", URL: "http://shop.example/private/?q=1", Crawler: "news", Status: 200,
		Decision: &policy.Decision{Enforced: enforced, Reason: policy.ByRule, Rule: robotstxt.Rule{Line: 2, Pattern: "/private/"}},
	}
	if enforced {
		x.Status, x.Refused, x.Why = 403, "rule", x.Cause()
	}
	return x
}

// TestRequestLineOnTerminal has a line of each kind, in colours and without.
func TestRequestLineOnTerminal(t *testing.T) {
	allow := &policy.Decision{Allow: true}
	for name, test := range map[string]struct {
		x    *proxy.Record
		want string
	}{
		"refused":         {deniedRecord(true), "15:04:06  [31m]refused[0m]  news  GET http://shop.example/private/?q=1  robots.txt line 2: Disallow: /private/\n"},
		"report mode":     {deniedRecord(false), "15:04:06  [33m]would be denied[0m]  news  GET http://shop.example/private/?q=1  robots.txt line 2: Disallow: /private/\n"},
		"allowed":         {&proxy.Record{Start: at, Method: "GET", URL: "http://shop.example/", Crawler: "news", Status: 200, Decision: allow}, "15:04:05  200  news  GET http://shop.example/\n"},
		"failed":          {&proxy.Record{Start: at, Method: "GET", URL: "http://shop.example/", Crawler: "news", Status: 502, Decision: allow, Error: "reset"}, "15:04:05  502  news  GET http://shop.example/  reset\n"},
		"client has left": {&proxy.Record{Start: at, Method: "GET", URL: "http://shop.example/", Crawler: "news", Decision: allow}, "15:04:05  no answer  news  GET http://shop.example/\n"},
		"hostile text":    {&proxy.Record{Start: at, Method: "G\x1b[2JET", URL: "/\u202e\n\r\x9b", Status: 400, Refused: proxy.IsMalformed, Why: "a\x07b"}, "15:04:05  [31m]refused[0m]  G\\x1b[2JET /\\u202e\\n\\r\\ufffd  a\\ab\n"},
		"long text":       {&proxy.Record{Start: at, Method: "GET", URL: strings.Repeat("é", 3000), Status: 400, Refused: proxy.IsMalformed, Why: "x"}, "15:04:05  [31m]refused[0m]  GET " + strings.Repeat("é", 196) + "…  x\n"},
	} {
		for _, colours := range []bool{true, false} {
			var b bytes.Buffer
			linesForScreen(&lineScreen{&b, "> ", colours}).print([]requestLine{requestLineOf(test.x, false)}, 0)
			want := "> " + strings.NewReplacer("[31m]", red, "[33m]", yellow, "[0m]", normal).Replace(test.want)
			if !colours {
				want = strings.NewReplacer(red, "", yellow, "", normal, "").Replace(want)
			}
			if got := b.String(); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}

// TestRequestLineKeepsNoRobots: a line that waits is short, whatever the request and its rule are.
func TestRequestLineKeepsNoRobots(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	x := &proxy.Record{Method: long, URL: long, Error: long, Decision: &policy.Decision{Reason: policy.ByRule, Rule: robotstxt.Rule{Pattern: long}}}
	r := requestLineOf(x, false)
	for _, text := range []string{r.method, r.url, r.cause} {
		if len(text) > maxLineText+len("…") {
			t.Errorf("a text of %d bytes waits", len(text))
		}
	}
}

// TestRequestLinesFlood: requests do not wait for a terminal that is stopped, and the lines that do
// not fit are counted.
func TestRequestLinesFlood(t *testing.T) {
	const flood, max = 1000, 50
	stopped, going := make(chan int), make(chan struct{})
	shown, more := 0, 0
	print := func(lines []requestLine, left int) {
		stopped <- len(lines)
		<-going
		shown, more = shown+len(lines), more+left
	}
	l := newRequestLines(lineForm{print: print, max: max}, false, func(*config.Config) config.Requests { return config.RefusedRequests })
	l.use(nil)
	l.add(&proxy.Record{Decision: &policy.Decision{Allow: true}}) // not refused
	l.add(deniedRecord(true))
	if n := <-stopped; n != 1 {
		t.Errorf("%d lines for one refusal", n)
	}
	for range flood {
		l.add(deniedRecord(true))
	}
	go func() {
		for range stopped {
		}
	}()
	close(going)
	l.close()
	close(stopped)
	if shown != 1+max || more != flood-max {
		t.Errorf("%d lines and %d more, want %d and %d", shown, more, 1+max, flood-max)
	}
}

// TestRequestLinesPause: the lines of a pause are written together after it, and the last ones at
// once when the gate ends.
func TestRequestLinesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		begun := time.Now()
		print := func(lines []requestLine, _ int) { got = append(got, len(lines), int(time.Since(begun).Seconds())) }
		l := newRequestLines(lineForm{print: print, max: 10, pause: 5 * time.Second}, false, func(*config.Config) config.Requests { return config.AllRequests })
		l.use(nil)
		for range 4 {
			synctest.Wait()
			l.add(deniedRecord(true))
		}
		time.Sleep(6 * time.Second) // fake clock
		l.add(deniedRecord(true))
		l.close()
		if want := []int{1, 0, 3, 5, 1, 6}; !slices.Equal(got, want) {
			t.Errorf("numbers of lines and seconds: got %v, want %v", got, want)
		}
	})
}

// TestMoreRequests: the number of requests without a line is on the terminal and in the log.
func TestMoreRequests(t *testing.T) {
	var screen, log bytes.Buffer
	lines := []requestLine{requestLineOf(deniedRecord(true), true)}
	linesForScreen(&lineScreen{w: &screen}).print(lines, 1234)
	linesForLog(slog.NewTextHandler(&log, nil)).print(lines, 1234)
	for text, end := range map[string]string{screen.String(): "\nand 1234 more\n", log.String(): ` msg="further requests have no line, since there were too many" requests=1234` + "\n"} {
		if !strings.HasSuffix(text, end) || !strings.Contains(text, "/private/?q=*") {
			t.Errorf("got %q", text)
		}
	}
}

// TestNoLineScreen: a file is not a terminal.
func TestNoLineScreen(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if s := newLineScreen(file, nil, "", func(string) string { return "xterm" }); s != nil {
		t.Error("a file is taken for a terminal")
	}
}
