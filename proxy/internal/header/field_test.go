package header

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"
)

// textParam returns the value that package httpsfv reads from what TextParam writes.
func textParam(t *testing.T, s string) any {
	t.Helper()
	f := NewField()
	f.Token("x")
	f.TextParam("t", s)
	h := http.Header{}
	f.Set(h, "T")
	i, err := httpsfv.UnmarshalItem(h["T"])
	if err != nil {
		t.Fatalf("%q: %q: %v", s, h["T"], err)
	}
	v, ok := i.Params.Get("t")
	if !ok {
		return "" // an empty text is left out
	}
	return v
}

// Every value is written as package httpsfv writes it. If httpsfv refuses a value, the
// field is left out.
func TestLikeHTTPSFV(t *testing.T) {
	texts := []string{"", "a", "*", "a/b:c!#$%&'*+-.^_`|~", "1a", "-a", "a b", `"`, `\`, `a"b\c`, "\x1f", "\x7f", "~", "%", "ü", "\xff", "a\xff\xfeb", "\u2028", strings.Repeat("x", 300)}
	const largest = 999_999_999_999_999
	numbers := []int64{0, 1, -1, largest, largest + 1, -largest, -largest - 1, math.MaxInt64, math.MinInt64}
	decimals := []float64{0, 1, -1, 0.5, 10, 0.0001, 0.0005, 0.0015, 0.1235, -2.0025, 1234567.891, 999_999_999_999, 999_999_999_999.999,
		1e12, -1e12, 1e300, math.MaxFloat64, math.Inf(1)} // not NaN, which httpsfv writes
	check := func(want any, write func(*Field)) {
		t.Helper()
		f := NewField()
		h := http.Header{}
		write(f)
		f.Set(h, "A")
		f.Token("ok") // an invalid value must not affect the next field
		f.Set(h, "B")
		expected, err := httpsfv.Marshal(httpsfv.NewItem(want))
		if got, ok := h["A"]; ok != (err == nil) || ok && got[0] != expected {
			t.Errorf("%#v: got %q, want %q (%v)", want, got, expected, err)
		}
		if h.Get("B") != "ok" {
			t.Errorf("%#v: the field after it is %q", want, h["B"])
		}
	}
	for _, s := range texts {
		check(httpsfv.Token(s), func(f *Field) { f.Token(s) })
		check(s, func(f *Field) { f.Quoted(s) })
	}
	for _, n := range numbers {
		check(n, func(f *Field) { f.Integer(n) })
		if at := time.Unix(n, 0); at.Unix() == n {
			check(at, func(f *Field) { f.Date(at) })
		}
	}
	for _, d := range decimals {
		check(d, func(f *Field) { f.Decimal(d) })
	}
	check(false, (*Field).False)
	for _, s := range texts {
		want := any(cut(s))
		if !IsPrintable(s) {
			want = httpsfv.DisplayString(strings.ToValidUTF8(s, "\uFFFD"))
		}
		if got := textParam(t, s); got != want {
			t.Errorf("%q: got %#v, want %#v", s, got, want)
		}
	}
}

// TextParam writes any bytes as a value that can be read again, and that is a beginning of
// the text.
func TestTextParam(t *testing.T) {
	alphabet := []string{"a", " ", `"`, `\`, "%", "\x00", "\n", "\x7f", "\x80", "\xff", "ü", "€", "𝄞", "\u2028", "\uFFFD"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for range r.IntN(400) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		s := b.String()
		v := textParam(t, s)
		got := fmt.Sprint(v)
		if _, display := v.(httpsfv.DisplayString); display == (strings.Trim(got, printableASCII) == "") {
			t.Fatalf("seed %d: %q: became a %T", seed, s, v)
		}
		if valid := strings.ToValidUTF8(s, "\uFFFD"); !strings.HasPrefix(valid, got) && !strings.HasPrefix(valid, strings.TrimSuffix(got, "\uFFFD")) {
			t.Fatalf("seed %d: %q: became %q", seed, s, got)
		}
		if utf8.ValidString(s) && (len(got) > MaxText || len(s) > MaxText && len(got) <= MaxText-utf8.UTFMax) {
			t.Fatalf("seed %d: %q: %d bytes of %d", seed, s, len(got), len(s))
		}
	}
}

var printableASCII = func() string {
	var b strings.Builder
	for c := ' '; c <= '~'; c++ {
		b.WriteRune(c)
	}
	return b.String()
}()

// A list has commas between its members, and only there.
func TestList(t *testing.T) {
	f, h := NewField(), http.Header{}
	f.Token("a")
	f.Param("b")
	f.Integer(1)
	f.Member()
	f.Quoted("c")
	f.Member()
	f.Token("d")
	f.Flag("e")
	f.Member()
	f.Token("f")
	f.Param("g")
	f.Integer(-2)
	f.Set(h, "L")
	if got, want := h.Get("L"), `a;b=1, "c", d;e, f;g=-2`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
