package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/escape"
	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy"
)

// plainly is what appendLine is to be the same as.
func plainly(r *Record) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // a URL's & can be searched for
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return escape.JSON(line.Bytes()), nil
}

// same compares the lines of a record.
func same(t *testing.T, r *Record) {
	t.Helper()
	want, wantErr := plainly(r)
	got, err := appendLine([]byte("before"), r, new(clock))
	switch {
	case (err != nil) != (wantErr != nil):
		t.Errorf("%+v: got error %v, want %v", r, err, wantErr)
	case err == nil && string(got) != "before"+string(want):
		t.Errorf("got  %swant before%s", got, want)
	}
}

// A filler makes up values of any kind that a record has.
type filler struct {
	*rand.Rand
	texts []string
}

func (f filler) fill(t testing.TB, v reflect.Value) {
	if f.IntN(4) == 0 {
		return // its zero
	}
	switch v.Interface().(type) {
	case Link:
		return // is appended by the queue
	case time.Time:
		v.Set(reflect.ValueOf(f.time()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(t, field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{1, -1, 200, math.MaxInt64, math.MinInt64, f.Int64()}[f.IntN(6)])
	case reflect.Float64:
		v.SetFloat([]float64{1, -1.5, 1e-6, 9.99e-7, -1e-9, 5e-324, 1e20, 1e21, math.MaxFloat64, math.Copysign(0, -1), f.Float64(), math.Float64frombits(f.Uint64())}[f.IntN(12)])
	default:
		t.Fatalf("a record has a %v", v.Type())
	}
}

func (f filler) text() string {
	var s strings.Builder
	for range f.IntN(4) {
		s.WriteString(f.texts[f.IntN(len(f.texts))])
	}
	return s.String()
}

func (f filler) time() time.Time {
	at := time.Unix(f.Int64N(1<<33), []int64{0, 1, 120_000_000, f.Int64N(1e9)}[f.IntN(4)])
	switch f.IntN(20) {
	case 0:
		at = at.AddDate(8000, 0, 0) // RFC 3339 has four digits
	case 1:
		at = time.Unix(f.Int64(), 0)
	case 2:
		return at.In(time.FixedZone("", f.IntN(50*3600)-25*3600))
	}
	return at.UTC()
}

var hostileTexts = []string{
	"a", "http://a.example/?a=1&b=<c>", "\"", "\\", "/", "\x00\b\f\n\r\t\x1b\x1f", " ~", "\x7f", "\u0080\u009b", "é", "中", "\u00ad", "\u200b", "\u2028\u2029",
	"\u202e", "\ufeff", "\ufffd", "\U0001f600", "\U000e0001", "\xff", "\xc3", "\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", `\u0041`, strings.Repeat("x", 300),
}

// TestLineAgrees holds records of all sorts against encoding/json.
func TestLineAgrees(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(1, 2)), hostileTexts}
	bad := 0
	for range 5000 {
		var r Record
		f.fill(t, reflect.ValueOf(&r).Elem())
		same(t, &r)
		if _, err := plainly(&r); err != nil {
			bad++
		}
	}
	if bad == 0 || bad > 4000 {
		t.Errorf("%d of the records can't be encoded", bad)
	}
}

// TestLineHasAll sets one member after the other: none is forgotten.
func TestLineHasAll(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(3, 4)), hostileTexts}
	for i := range reflect.TypeFor[Record]().NumField() {
		for range 200 {
			var r Record
			f.fill(t, reflect.ValueOf(&r).Elem().Field(i))
			same(t, &r)
		}
	}
}

func FuzzLine(f *testing.F) {
	for i, text := range hostileTexts {
		f.Add(uint64(i), text, text)
	}
	f.Fuzz(func(t *testing.T, seed uint64, a, b string) {
		var r Record
		filler{rand.New(rand.NewPCG(seed, 0)), []string{a, b}}.fill(t, reflect.ValueOf(&r).Elem())
		same(t, &r)
	})
}

// TestDrafts: nothing of a record is left in the next one's.
func TestDrafts(t *testing.T) {
	denied := decided("User-agent: examplebot\nDisallow: /private/\n", "ExampleBot", "Other")
	reported, copied := *denied, *denied
	reported.Enforced = false
	older, failed := *denied.Robots.Snapshot, *denied.Robots.Snapshot
	older.SHA256, older.Lifetime = "older", time.Minute
	failed.Status, failed.Since = 500, time.Unix(1, 0)
	copied.Robots = new(*denied.Robots)
	copied.Robots.Answer, copied.Robots.Good = &failed, &older
	copied.Reason = policy.IsUnreachable
	all := []*proxy.Record{
		{},
		{Method: "GET", URL: "/x", Error: "no host", Status: 400},
		{Method: "GET", URL: "http://a.example/private/x?a=b", Decision: denied, Client: netip.MustParseAddr("2001:db8::1"), Tunnel: true},
		{Method: "GET", URL: "http://a.example/", Client: netip.MustParseAddr("192.0.2.1")},
		{Method: "GET", URL: "http://a.example", Decision: &reported, Duration: time.Second, Client: netip.MustParseAddr("192.0.2.2")},
		{Method: "GET", URL: "http://a.example/", Decision: &copied, Tags: robotstag.ParseHeader(nil, []string{"noindex, max-snippet: 20"}).For()},
		{Method: "GET", URL: "http://a.example/", Remembered: robotstag.ParseHeader(nil, []string{"nofollow"}).For(), Config: "c"},
	}
	var used draft
	for _, i := range rand.New(rand.NewPCG(5, 6)).Perm(500) {
		x := all[i%len(all)]
		var fresh draft
		fresh.take(x, true)
		used.take(x, true)
		if got, want := asJSON(t, &used.Record), asJSON(t, &fresh.Record); got != want {
			t.Fatalf("%s: got  %s, want %s", x.URL, got, want)
		}
		used.line = append(used.line, "x"...)
		used.clear()
		if tags := used.tags[:cap(used.tags)]; len(used.line) > 0 || strings.Join(tags, "") != "" || !reflect.ValueOf(used.Record).IsZero() || used.evidence != (evidence{}) {
			t.Fatalf("%s leaves %+v and the tags %q", x.URL, used, tags)
		}
	}
}

func asJSON(t *testing.T, r *Record) string {
	line, err := plainly(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// TestDraftIsBounded: one request does not leave much memory behind.
func TestDraftIsBounded(t *testing.T) {
	var d draft
	long := &proxy.Record{URL: strings.Repeat("x", 1<<20), Tags: make([]robotstag.Rule, 10_000)}
	d.take(long, false)
	line, err := appendLine(d.line, &d.Record, &d.clock)
	if err != nil {
		t.Fatal(err)
	}
	d.line = line
	if d.clear(); cap(d.line) > 0 || cap(d.tags) > 0 {
		t.Errorf("room for %d bytes and %d tags is kept", cap(d.line), cap(d.tags))
	}
}

// TestClock holds times that are new to it, and those that it knows, against AppendText.
func TestClock(t *testing.T) {
	var c clock
	f := filler{Rand: rand.New(rand.NewPCG(7, 8))}
	for range 1000 {
		at := f.time()
		for _, ns := range []int{0, at.Nanosecond(), 1, 999_999_999, 100_000_000, 120_000} {
			at = at.Add(time.Duration(ns - at.Nanosecond()))
			for _, at := range []time.Time{at, at.UTC(), at.In(time.FixedZone("", 3600))} {
				want, wantErr := at.AppendText([]byte("x"))
				if got, err := c.append([]byte("x"), at); string(got) != string(want) || (err != nil) != (wantErr != nil) {
					t.Fatalf("got %s, %v, want %s, %v", got, err, want, wantErr)
				}
			}
		}
	}
	for _, at := range []time.Time{{}, time.Unix(0, 1).UTC(), time.Unix(-1, 0).UTC(), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		want, wantErr := at.AppendText(nil)
		for range 2 {
			if got, err := c.append(nil, at); string(got) != string(want) || (err != nil) != (wantErr != nil) {
				t.Errorf("got %s, %v, want %s, %v", got, err, want, wantErr)
			}
		}
	}
}

// TestSplit: a URL that was decided about is cut where parsing it would.
func TestSplit(t *testing.T) {
	for _, raw := range []string{
		"http://a.example", "http://a.example/", "https://a.example:8443/x?y=z", "http://[2001:db8::1]:81/a//b?c=://d/", "http://a/?", "http://a//?/", "http://a/:", "https://bücher.example/é|\"?é\\",
	} {
		target, err := policy.ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{target.String(), target.Origin(), Redact(target.String())} {
			origin, path := split(url, true)
			if wantOrigin, wantPath := split(url, false); origin != wantOrigin || path != wantPath || origin+path != url {
				t.Errorf("%s: got %q and %q, want %q and %q", url, origin, path, wantOrigin, wantPath)
			}
		}
	}
}

// TestDraftAllocates next to nothing: here the text of the rule.
func TestDraftAllocates(t *testing.T) {
	x := &proxy.Record{Method: "GET", URL: "http://a.example/private/x", Client: netip.MustParseAddr("192.0.2.1"), Decision: decided("User-agent: *\nDisallow: /private/\n", "ExampleBot")}
	var d draft
	if n := testing.AllocsPerRun(1000, func() {
		d.take(x, false)
		line, err := appendLine(d.line, &d.Record, &d.clock)
		if err != nil {
			t.Error(err)
		}
		d.line = line
		d.clear()
	}); n > 1 {
		t.Errorf("%v allocations, want 1 at most", n)
	}
}

// TestSeconds: a duration is written down with as many digits as it takes, as by strconv.
func TestSeconds(t *testing.T) {
	check := func(f float64) {
		t.Helper()
		w := writer{clock: new(clock)}
		w.float("", f)
		if want, _ := json.Marshal(f); string(w.b) != string(want) || w.err != nil {
			t.Fatalf("%b: got %s, %v, want %s", f, w.b, w.err, want)
		}
	}
	for _, n := range []int64{0, 1, 999, 1000, 1001, 1e9 - 1, 1e9, 1e9 + 1, 1e10, 1e15 - 1, 1e15, 1e15 + 1, math.MaxInt64} {
		check(time.Duration(n).Seconds())
		check(-time.Duration(n).Seconds())
	}
	for range 100_000 {
		f := time.Duration(rand.Int64() >> rand.IntN(63)).Seconds()
		check(f)
		check(math.Nextafter(f, 1)) // which may be no whole nanosecond
		check(math.Nextafter(f, math.Inf(1)))
	}
}
