package requestlog

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/record"
)

// at is when the requests of these tests began.
var at = time.Date(2026, 3, 4, 15, 4, 5, 0, time.Local)

func deniedRecord(enforced bool) *record.Record {
	x := &record.Record{
		ID: "ID", Time: at, Duration: 1, Client: "192.0.2.7", Method: "GET", Origin: "http://shop.example", Path: "/private/?q=1", Crawler: "news", Status: 200,
		Decision: "deny", Reason: "rule", Cause: "robots.txt line 2: Disallow: /private/",
	}
	if enforced {
		x.Status = 403
	} else {
		x.Enforced = new(false)
	}
	return x
}

// TestOnTerminal has a line of each kind.
func TestOnTerminal(t *testing.T) {
	for name, test := range map[string]struct {
		x    *record.Record
		want string
	}{
		"refused":     {deniedRecord(true), "15:04:06  refused  news  GET http://shop.example/private/?q=1  robots.txt line 2: Disallow: /private/\n"},
		"report mode": {deniedRecord(false), "15:04:06  would be denied  news  GET http://shop.example/private/?q=1  robots.txt line 2: Disallow: /private/\n"},
		"allowed":     {&record.Record{Time: at, Method: "GET", URL: "http://shop.example/", Crawler: "news", Status: 200, Decision: "allow"}, "15:04:05  200  news  GET http://shop.example/\n"},
		"failed": {&record.Record{Time: at, Method: "GET", URL: "http://shop.example/", Crawler: "news", Status: 502, Decision: "allow", Error: "reset"},
			"15:04:05  502  news  GET http://shop.example/  reset\n"},
		"client has left": {&record.Record{Time: at, Method: "GET", URL: "http://shop.example/", Crawler: "news", Decision: "allow"}, "15:04:05  no answer  news  GET http://shop.example/\n"},
		"hostile text": {&record.Record{Time: at, Method: "G\x1b[2JET", URL: "/\u202e\n\r\x9b", Status: 400, Refused: record.IsMalformed, Cause: "a\x07b"},
			"15:04:05  refused  G\\x1b[2JET /\\u202e\\n\\r\\ufffd  a\\ab\n"},
		"long text": {&record.Record{Time: at, Method: "GET", URL: strings.Repeat("é", 3000), Status: 400, Refused: record.IsMalformed, Cause: "x"},
			"15:04:05  refused  GET " + strings.Repeat("é", 196) + "…  x\n"},
	} {
		var b bytes.Buffer
		ForScreen(&Screen{&b, "> "}).print([]line{lineOf(test.x)}, 0)
		if got, want := b.String(), "> "+test.want; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestLogOnTerminal: warnings look like the other lines. Text from the network can't break or reverse one.
func TestLogOnTerminal(t *testing.T) {
	var b bytes.Buffer
	h := (&Screen{&b, "> "}).Log(slog.LevelInfo)
	for _, r := range []struct {
		level slog.Level
		attrs []slog.Attr
	}{
		{slog.LevelWarn, []slog.Attr{slog.Any("client", netip.MustParseAddr("192.0.2.7")), slog.Int("others_since_last", 3)}},
		{slog.LevelError, []slog.Attr{slog.Any("error", errors.New("a\u202e\n\x1b[2Jb"))}},
		{slog.LevelInfo, nil},
		{slog.LevelDebug, nil},
	} {
		line := slog.NewRecord(at, r.level, "it\nis so", 0)
		line.AddAttrs(r.attrs...)
		if h := h.WithAttrs([]slog.Attr{slog.String("gate", "G")}); h.Enabled(t.Context(), r.level) {
			if err := h.Handle(t.Context(), line); err != nil {
				t.Error(err)
			}
		}
	}
	want := "> 15:04:05  warning  it\\nis so  client: 192.0.2.7  others since last: 3  gate: G\n" +
		"> 15:04:05  error  it\\nis so  error: a\\u202e\\n\\x1b[2Jb  gate: G\n" +
		"> 15:04:05  info  it\\nis so  gate: G\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDuration: the log in JSON has seconds, as the audit log does. Text has the unit.
func TestDuration(t *testing.T) {
	var text, json bytes.Buffer
	r := []line{{duration: 708789 * time.Nanosecond}, {duration: 2 * time.Second}}
	ForLog(slog.NewTextHandler(&text, nil)).print(r, 0)
	ForLog(slog.NewJSONHandler(&json, nil)).print(r, 0)
	for got, all := range map[string][]string{text.String(): {" duration=708.789µs", " duration=2s"}, json.String(): {`"duration":0.000708789}`, `"duration":2}`}} {
		for _, want := range all {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in\n%s", want, got)
			}
		}
	}
}

// TestBounded: a line is bounded, in both formats of the log and while it waits, whatever the request and its rule
// are.
func TestBounded(t *testing.T) {
	for _, c := range []string{"x", "é", "\xff", "\"", "\x01", "\u202e", "\U000e0001"} {
		long := strings.Repeat(c, 60_000)
		x := &record.Record{ID: "ID", Method: long, URL: long, Error: long, Crawler: "news", Decision: "deny", Reason: "rule", Cause: long}
		r := lineOf(x)
		if n := len(r.method) + len(r.url) + len(r.cause); n > 3<<10 {
			t.Errorf("%q: a line waits with %d bytes of text", c, n)
		}
		var text, json bytes.Buffer
		ForLog(slog.NewTextHandler(&text, nil)).print([]line{r}, 0)
		ForLog(slog.NewJSONHandler(&json, nil)).print([]line{r}, 0)
		for _, b := range []*bytes.Buffer{&text, &json} {
			if b.Len() > 2*record.MaxURL {
				t.Errorf("%q: a line of %d bytes: %.200s", c, b.Len(), b)
			}
		}
	}
}

// TestFlood: requests do not wait for a terminal or a log that is stopped, and the lines that do
// not fit are counted.
func TestFlood(t *testing.T) {
	for _, test := range []struct {
		form Form
		max  int
	}{{ForScreen(&Screen{}), 100}, {ForLog(slog.DiscardHandler), 1000}} {
		const flood = 2000
		stopped, going := make(chan int), make(chan struct{})
		shown, more := 0, 0
		test.form.print = func(lines []line, left int) {
			stopped <- len(lines)
			<-going
			shown, more = shown+len(lines), more+left
		}
		l := New(test.form)
		l.Use(Refused)
		l.Add(&record.Record{Decision: "allow"}) // not refused
		l.Add(deniedRecord(true))
		if n := <-stopped; n != 1 {
			t.Errorf("%d lines for one refusal", n)
		}
		for range flood {
			l.Add(deniedRecord(true))
		}
		go func() {
			for range stopped {
			}
		}()
		close(going)
		l.Close()
		close(stopped)
		if shown != 1+test.max || more != flood-test.max {
			t.Errorf("%d lines and %d more, want %d and %d", shown, more, 1+test.max, flood-test.max)
		}
	}
}

// TestPause: the lines of a pause are written together after it, and the last ones at
// once when the gate ends.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		begun := time.Now()
		print := func(lines []line, _ int) { got = append(got, len(lines), int(time.Since(begun).Seconds())) }
		l := New(Form{print: print, max: 10, pause: 5 * time.Second})
		l.Use(All)
		for range 4 {
			synctest.Wait()
			l.Add(deniedRecord(true))
		}
		time.Sleep(6 * time.Second) // fake clock
		l.Add(deniedRecord(true))
		l.Close()
		if want := []int{1, 0, 3, 5, 1, 6}; !slices.Equal(got, want) {
			t.Errorf("numbers of lines and seconds: got %v, want %v", got, want)
		}
	})
}

// TestMoreRequests: the number of requests without a line is on the terminal and in the log.
func TestMoreRequests(t *testing.T) {
	var screen, log bytes.Buffer
	lines := []line{lineOf(deniedRecord(true))}
	ForScreen(&Screen{w: &screen}).print(lines, 1234)
	ForLog(slog.NewTextHandler(&log, nil)).print(lines, 1234)
	for text, end := range map[string]string{screen.String(): "\nand 1234 more\n", log.String(): ` msg="further requests have no line, since there were too many" requests=1234` + "\n"} {
		if !strings.HasSuffix(text, end) || !strings.Contains(text, "/private/?q=1") {
			t.Errorf("got %q", text)
		}
	}
}
