package auditreport

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// TestEntriesOfPipe: an entry is printed before standard input has ended.
func TestEntriesOfPipe(t *testing.T) {
	host, err := audit.ParseHostPattern("a.example")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // reports a deadlock
		in, input := io.Pipe()
		output, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			o := Options{Filter: &audit.Filter{Host: host}, JSON: true, File: []string{"-"}}
			ended <- List(console.Streams{In: in, Out: out, Err: io.Discard}, o)
		}()
		const entry = `{"time":"2026-01-02T03:04:05Z","id":"A","method":"GET","origin":"http://a.example","path":"/"}` + "\n"
		if _, err := io.WriteString(input, entry); err != nil {
			t.Fatal(err)
		}
		if got, err := bufio.NewReader(output).ReadString('\n'); got != entry {
			t.Errorf("got %q, %v", got, err)
		}
		input.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestEntryLine compares the lines of --follow.
func TestEntryLine(t *testing.T) {
	deny := func(reason policy.Reason) audit.Entry {
		return audit.Entry{Decision: "deny", Reason: reason, Status: 403}
	}
	rule, override, reported := deny(policy.ByRule), deny(policy.ByOverride), deny(policy.IsUnreachable)
	rule.Rule, rule.Line = "Disallow: /\x1b", 2
	override.Note = "no contract"
	reported.Enforced = new(false)
	for _, test := range []struct {
		entry audit.Entry
		want  string
	}{
		{audit.Entry{Decision: "allow", Status: 200}, "200  GET http://a.example/x"},
		{audit.Entry{Decision: "allow", Status: 502, Error: "no route"}, "502  GET http://a.example/x  no route"},
		{audit.Entry{Decision: "allow"}, "no answer  GET http://a.example/x"},
		{audit.Entry{Decision: "allow", Status: 503, Refused: proxy.ByLimit}, "refused  GET http://a.example/x  limit"},
		{audit.Entry{Status: 403, Refused: proxy.ByGuard, Error: "private"}, "refused  GET http://a.example/x  private"},
		{rule, `refused  GET http://a.example/x  robots.txt line 2: Disallow: /\x1b`},
		{override, "refused  GET http://a.example/x  operator's override: no contract"},
		{reported, "would be denied  GET http://a.example/x  robots.txt is unreachable"},
		{deny(policy.TooComplex), "refused  GET http://a.example/x  robots.txt takes too many steps for this URL"},
	} {
		r := test.entry
		r.Time, r.ID, r.Method, r.Origin, r.Path = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "A", "GET", "http://a.example", "/x"
		var b strings.Builder
		if err := printReport(&b, "entry", entryText{&r, ""}); err != nil {
			t.Fatal(err)
		}
		if want := "2026-01-02 03:04:05  " + test.want + "  (A)\n"; b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}
