package admin

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
)

// TestChanges: the history shows which lines changed from each file to the next.
func TestChanges(t *testing.T) {
	files := map[string]string{}
	digest := func(body string) string {
		d := snapshot.Digest(body)
		files[d] = body
		return d
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(days int) time.Time { return day.AddDate(0, 0, days) }
	first := digest("User-agent: *\nDisallow: /old\n")
	past := []Past{
		{From: at(0), To: at(2), Status: 200, SHA256: first, Bytes: 30},
		{From: at(1), To: at(9), Status: 200, SHA256: digest("# crawlers"), Asker: "NewsBot"},
		{From: at(2), To: at(3), Status: 503, Error: "the origin answered 503"},
		{From: at(3), To: at(4), Status: 200, SHA256: first},
		{From: at(4), To: at(5), Status: 200, SHA256: digest("User-agent: *\nDisallow: /<b>\u202e\n")},
		{From: at(5), Status: 200, SHA256: strings.Repeat("0", 64)},
	}
	o := &origin{status: 200, body: rules, past: past, files: files}
	h := listener(t, o)
	ask(h, "POST", "192.0.2.1:9310", "/origin?origin=http://a.example")
	page := see(t, h, "/origin?origin=http://a.example")
	has(t, page,
		"2026-01-06 00:00:00 UTC to now to status 200 It differs from the file before. One of the two files is not kept any more.",
		"2026-01-05 00:00:00 UTC to 2026-01-06 00:00:00 UTC to status 200 Changed lines --- "+first[:12]+" 2026-01-04 00:00:00 +++ ",
		`@@ -1,2 +1,2 @@ User-agent: * -Disallow: /old +Disallow: /<b>\u202e 2026-01-04`,
		"to status 503 the origin answered 503 2026-01-02 00:00:00 UTC to 2026-01-10 00:00:00 UTC to NewsBot status 200 2026-01-01")
	if _, elements := text(t, page); len(elements["ins"]) != 2 || len(elements["del"]) != 2 || len(elements["details"]) != 1 { // with the names of the files
		t.Errorf("the page marks %d lines as added and %d as removed, in %d differences", len(elements["ins"]), len(elements["del"]), len(elements["details"]))
	}
}

// TestManyChanges: the page is bounded, however often and much an origin changes its robots.txt.
func TestManyChanges(t *testing.T) {
	o := &origin{status: 200, body: rules, files: map[string]string{}}
	for i := range 3 * maxPast {
		body := strings.Repeat(fmt.Sprintf("Disallow: /%d/%s\n", i, strings.Repeat("<", 1000)), 400)
		o.files[snapshot.Digest(body)] = body
		o.past = append(o.past, Past{From: time.Unix(int64(i), 0), Status: 200, SHA256: snapshot.Digest(body)})
	}
	h := listener(t, o)
	ask(h, "POST", "192.0.2.1:9310", "/origin?origin=http://a.example")
	page := see(t, h, "/origin?origin=http://a.example")
	has(t, page, "303 more lines", "The differences above are long enough for a page.", "There are 200 older answers.")
	if len(page) > 4_000_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// bodies returns a file of the origin's history.
func (o *origin) bodies(digest string) (string, error) {
	body, ok := o.files[digest]
	if !ok {
		return "", fs.ErrNotExist
	}
	return body, nil
}
