package proxy

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
)

// text is what textParam appends, as a value of package httpsfv, which reads it.
func text(s string) any {
	f := fields{}
	f.token("x")
	f.textParam("t", s)
	f.end("T")
	h := http.Header{}
	f.addTo(h)
	i, err := httpsfv.UnmarshalItem(h["T"])
	if err != nil {
		return err
	}
	v, ok := i.Params.Get("t")
	if !ok {
		return "" // which is left out
	}
	return v
}

// What fields appends is what package httpsfv makes of the same values, and where that
// refuses a value, there is no field.
func TestFieldsAreTheLibrarys(t *testing.T) {
	texts := []string{"", "a", "*", "a/b:c!#$%&'*+-.^_`|~", "1a", "-a", "a b", `"`, `\`, `a"b\c`, "\x1f", "\x7f", "~", "%", "ü", "\xff", "a\xff\xfeb", "\u2028", strings.Repeat("x", 300)}
	numbers := []int64{0, 1, -1, maxInteger, maxInteger + 1, -maxInteger, -maxInteger - 1, math.MaxInt64, math.MinInt64}
	check := func(want any, write func(*fields)) {
		t.Helper()
		f := fields{}
		write(&f)
		f.end("A")
		f.token("ok") // the next field does not suffer
		f.end("B")
		h := http.Header{}
		f.addTo(h)
		expected, err := httpsfv.Marshal(httpsfv.NewItem(want))
		if got, ok := h["A"]; ok != (err == nil) || ok && got[0] != expected {
			t.Errorf("%#v: got %q, want %q (%v)", want, got, expected, err)
		}
		if h.Get("B") != "ok" {
			t.Errorf("%#v: the field after it is %q", want, h["B"])
		}
	}
	for _, s := range texts {
		check(httpsfv.Token(s), func(f *fields) { f.token(s) })
		check(s, func(f *fields) { f.str(s) })
	}
	for _, n := range numbers {
		check(n, func(f *fields) { f.integer(n) })
		if at := time.Unix(n, 0); at.Unix() == n {
			check(at, func(f *fields) { f.date(at) })
		}
	}
	for _, s := range texts[1:] {
		want := any(cutText(s))
		if !isPrintable(s) {
			want = httpsfv.DisplayString(strings.ToValidUTF8(s, "\uFFFD"))
		}
		if got := text(s); got != want {
			t.Errorf("%q: got %#v, want %#v", s, got, want)
		}
	}
}

func BenchmarkAnnotate(b *testing.B) {
	x := &exchange{Record: Record{ID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", Head: Head{State: "complete", Bytes: 3500},
		Tags: []robotstag.Rule{{Name: "max-snippet", Value: "20", Source: "meta", Scope: "robots"}, {Name: "noarchive", Source: "meta", Scope: "robots"}},
		Decision: &policy.Decision{Allow: true, Reason: policy.ByRule, Token: "ExampleBot", URL: "https://www.example.com/robots.txt",
			Robots: &policy.Resolution{State: policy.Fresh, Age: time.Minute, Snapshot: &policy.Snapshot{Status: 200, SHA256: strings.Repeat("ab", 32)}}},
	}}
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		annotate(h, x)
	}
}

// A header may take any number of fields. A buffer that grew large is not kept for others,
// and nothing of a field is left in one that is.
func TestFieldBuffers(t *testing.T) {
	for _, size := range []int{10, maxPooledFields + 1} {
		f := &fields{}
		for i := range 20 {
			f.integer(int64(i))
			f.end(strconv.Itoa(i))
		}
		h := http.Header{}
		if f.addTo(h); len(h) != 20 || h["19"][0] != "19" {
			t.Errorf("got %v", h)
		}
		f.str(strings.Repeat("x", size))
		f.str("\x00") // which is invalid
		if kept := f.clear(); kept != (size == 10) {
			t.Errorf("%d bytes: kept: %v", size, kept)
		}
		if len(f.buf) > 0 || len(f.made) > 0 || f.invalid {
			t.Errorf("left: %+v", f)
		}
	}
}
