package sfv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"
)

// text is what TextParam appends, as a value of package httpsfv, which reads it.
func text(s string) any {
	f := Fields{}
	f.Token("x")
	f.TextParam("t", s)
	f.End("T")
	h := http.Header{}
	f.AddTo(h)
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
	check := func(want any, write func(*Fields)) {
		t.Helper()
		f := Fields{}
		write(&f)
		f.End("A")
		f.Token("ok") // the next field does not suffer
		f.End("B")
		h := http.Header{}
		f.AddTo(h)
		expected, err := httpsfv.Marshal(httpsfv.NewItem(want))
		if got, ok := h["A"]; ok != (err == nil) || ok && got[0] != expected {
			t.Errorf("%#v: got %q, want %q (%v)", want, got, expected, err)
		}
		if h.Get("B") != "ok" {
			t.Errorf("%#v: the field after it is %q", want, h["B"])
		}
	}
	for _, s := range texts {
		check(httpsfv.Token(s), func(f *Fields) { f.Token(s) })
		check(s, func(f *Fields) { f.Str(s) })
	}
	for _, n := range numbers {
		check(n, func(f *Fields) { f.Integer(n) })
		if at := time.Unix(n, 0); at.Unix() == n {
			check(at, func(f *Fields) { f.Date(at) })
		}
	}
	for _, s := range texts[1:] {
		want := any(Cut(s))
		if !isPrintable(s) {
			want = httpsfv.DisplayString(strings.ToValidUTF8(s, "\uFFFD"))
		}
		if got := text(s); got != want {
			t.Errorf("%q: got %#v, want %#v", s, got, want)
		}
	}
}

// Whatever the bytes, text makes a value that can be sent and read again, and
// says no more than the beginning of what it was given.
func TestText(t *testing.T) {
	alphabet := []string{"a", " ", `"`, `\`, "%", "\x00", "\n", "\x7f", "\x80", "\xff", "ü", "€", "𝄞", "\u2028", "\uFFFD"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for range r.IntN(400) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		s := b.String()
		item := httpsfv.NewItem("x")
		item.Params.Add("t", text(s))
		field, err := httpsfv.Marshal(item)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		i, err := httpsfv.UnmarshalItem([]string{field})
		if err != nil {
			t.Fatalf("%q: %q: %v", s, field, err)
		}
		v, _ := i.Params.Get("t")
		got := fmt.Sprint(v)
		if _, display := v.(httpsfv.DisplayString); display == (strings.Trim(got, printableASCII) == "") {
			t.Fatalf("%q: became a %T", s, v)
		}
		if valid := strings.ToValidUTF8(s, "\uFFFD"); !strings.HasPrefix(valid, got) && !strings.HasPrefix(valid, strings.TrimSuffix(got, "\uFFFD")) {
			t.Fatalf("%q: became %q", s, got)
		}
		if utf8.ValidString(s) && (len(got) > MaxText || len(s) > MaxText && len(got) <= MaxText-utf8.UTFMax) {
			t.Fatalf("%q: %d bytes of %d", s, len(got), len(s))
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

// A header may take any number of fields. A buffer that grew large is not kept for others,
// and nothing of a field is left in one that is.
func TestFieldBuffers(t *testing.T) {
	for _, size := range []int{10, maxPooledFields + 1} {
		f := &Fields{}
		for i := range 20 {
			f.Integer(int64(i))
			f.End(strconv.Itoa(i))
		}
		h := http.Header{}
		if f.AddTo(h); len(h) != 20 || h["19"][0] != "19" {
			t.Errorf("got %v", h)
		}
		f.Str(strings.Repeat("x", size))
		f.Str("\x00") // which is invalid
		if kept := f.clear(); kept != (size == 10) {
			t.Errorf("%d bytes: kept: %v", size, kept)
		}
		if len(f.buf) > 0 || len(f.made) > 0 || f.invalid {
			t.Errorf("left: %+v", f)
		}
	}
}
