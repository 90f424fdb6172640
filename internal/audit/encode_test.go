package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/usage"
)

// compare compares encode with encoding/json.
func compare(t *testing.T, r *record.Record) (err error) {
	t.Helper()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	wantErr := enc.Encode(r)
	got, err := encode(r)
	switch want := logtext.JSON(line.Bytes()); {
	case (err != nil) != (wantErr != nil):
		t.Errorf("%+v: got error %v, want %v", r, err, wantErr)
	case err == nil && !bytes.Equal(got, want):
		t.Errorf("got  %swant %s", got, want)
	}
	return err
}

// A filler sets fields to random values.
type filler struct {
	*rand.Rand
	texts []string
}

func (f filler) fill(t testing.TB, v reflect.Value) {
	if f.IntN(4) == 0 {
		return // zero
	}
	switch v.Interface().(type) {
	case record.Place:
		return // not encoded
	case time.Time:
		v.Set(reflect.ValueOf(f.time()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				f.fill(t, field)
			}
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
		var s strings.Builder
		for range f.IntN(4) {
			s.WriteString(f.texts[f.IntN(len(f.texts))])
		}
		v.SetString(s.String())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{1, -1, 200, math.MaxInt64, math.MinInt64, f.Int64()}[f.IntN(6)])
	case reflect.Float64:
		v.SetFloat([]float64{1, -1.5, 1e-6, 9.99e-7, -1e-9, 5e-324, 1e20, 1e21, math.MaxFloat64, f.Float64(), math.Float64frombits(f.Uint64())}[f.IntN(11)])
	default:
		t.Fatalf("a record has a %v", v.Type())
	}
}

func (f filler) time() time.Time {
	at := time.Unix(f.Int64N(1<<33), []int64{0, 1, 120_000_000, f.Int64N(1e9)}[f.IntN(4)])
	if f.IntN(20) == 0 {
		at = at.AddDate(8000, 0, 0) // RFC 3339 has four digits
	}
	return at.UTC()
}

// TestEncode sets one field after the other, and then all of them.
func TestEncode(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := filler{rand.New(rand.NewPCG(seed, 0)), hostileTexts}
	for i := range reflect.TypeFor[record.Record]().NumField() {
		for range 200 {
			var r record.Record
			if field := reflect.ValueOf(&r).Elem().Field(i); field.CanSet() {
				f.fill(t, field)
			}
			compare(t, &r)
		}
	}
	bad := 0
	for range 5000 {
		var r record.Record
		f.fill(t, reflect.ValueOf(&r).Elem())
		if compare(t, &r) != nil {
			bad++
		}
	}
	if bad == 0 || bad > 4000 {
		t.Errorf("%d of the records can't be encoded", bad)
	}
}

var hostileTexts = []string{
	"a", "http://a.example/?a=1&b=<c>", "\"", "\\", "/", "\x00\b\f\n\r\t\x1b\x1f", " ~", "\x7f", "\u0080\u009b", "é", "中", "\u00ad", "\u200b", "\u2028\u2029",
	"\u202e", "\ufeff", "\ufffd", "\U0001f600", "\U000e0001", "\xff", "\xc3", "\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", `\u0041`, strings.Repeat("x", 300),
}

// FuzzEncode: an entry with any text is one line of printable characters, and reads back as
// it was.
func FuzzEncode(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, int64(1_500_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, duration int64) {
		r := &record.Record{Time: time.Unix(1, 2).UTC(), Method: "GET", URL: text, Tags: []string{text},
			Usage: []usage.Detail{{Use: text, Value: "n", Line: 1}}, Robots: &record.Robots{URL: text}, Duration: time.Duration(duration).Seconds()}
		line, err := lineOf(*r)
		if err != nil {
			t.Fatal(err)
		}
		body, ok := bytes.CutSuffix(line, []byte("}\n"))
		if !ok || bytes.ContainsFunc(body, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("%q is written as %q", text, line)
		}
		got, err := parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		valid := strings.Map(func(c rune) rune { return c }, text) // bytes that are not UTF-8 become U+FFFD
		r.URL, r.Tags, r.Robots.URL, r.Usage[0].Use = valid, []string{valid}, valid, valid
		if !reflect.DeepEqual(got, r) {
			t.Errorf("%q: read back as %+v, want %+v", text, got, r)
		}
	})
}

// TestUsage: a record has the preferences with their sources, and the one that refused. One
// without preferences has no such members.
func TestUsage(t *testing.T) {
	reserved := usage.Preference{Category: "train-ai", Source: usage.ContentUsage, In: usage.InRobots, Line: 4}
	stated := usage.Stated{
		Preferences: []usage.Preference{reserved, {Category: "tdm", Allowed: true, Source: usage.TDMRep, In: usage.InHeader}},
		Licenses:    []usage.License{{URL: "https://a.example/l?id=1", Source: usage.RSL, In: usage.InMeta}},
	}
	d := &policy.Decision{Enforced: true, Reason: policy.ByUsage, Reserved: reserved}
	for _, c := range []struct {
		name string
		d    *policy.Decision
		x    record.Record
		want string
	}{
		{"refused", d, record.Record{Usage: stated.Details(), Licenses: stated.URLs()},
			`"decision":"deny","reason":"usage","reserved":{"use":"train-ai","value":"n","source":"content-usage","in":"robots","line":4},` +
				`"usage":[{"use":"train-ai","value":"n","source":"content-usage","in":"robots","line":4},{"use":"tdm","value":"y","source":"tdmrep","in":"header"}],` +
				`"licenses":["https://a.example/l?id=1"],"status":0`},
		{"nothing stated", &policy.Decision{Allow: true, Reason: policy.NoMatch}, record.Record{}, `"reason":"no-match","status":0`},
	} {
		c.d.Record(&c.x)
		line, err := lineOf(c.x)
		if err != nil || !strings.Contains(string(line), c.want) {
			t.Errorf("%s: %v, got %s, want %s", c.name, err, line, c.want)
		}
	}
}
