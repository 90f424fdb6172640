package admin

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"robotsgate/internal/overview"
)

func TestWords(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct{ got, want string }{
		{number(int64(0)), "0"},
		{number(int64(999)), "999"},
		{number(uint64(1000)), "1_000"},
		{number(int64(1234567)), "1_234_567"},
		{rate(0), "0"},
		{rate(0.04), "< 0.1"},
		{rate(0.1), "0.1"},
		{rate(99.96), "100.0"},
		{rate(1234.5), "1_235"},
		{byteCount(0), "0_B"},
		{byteCount(1023), "1023_B"},
		{byteCount(1536), "1.5_KiB"},
		{byteCount(256 << 20), "256_MiB"},
		{byteCount(10 << 30), "10_GiB"},
		{byteCount(5 << 50), "5120_TiB"},
		{lasted(0), "0_s"},
		{lasted(59), "59_s"},
		{lasted(61), "1_min 1_s"},
		{lasted(3600), "1_h"},
		{lasted(3600 + 59), "1_h"},
		{lasted(36000 + 600), "10_h"},
		{lasted(86400 + 7200), "1_d 2_h"},
		{ago(now, now), "just now"},
		{ago(now, now.Add(time.Hour)), "just now"},
		{ago(now, now.Add(-time.Minute)), "1_min ago"},
		{ahead(now, now), "by the next request"},
		{ahead(now, now.Add(time.Millisecond)), "by a request in 1_s or later"},
		{cut("a\u202eb\nc"), `a\u202eb\nc`},
		{cut(strings.Repeat("\u202e", 200)), strings.Repeat(`\u202e`, 34)[:200] + "…"},
		{cut(strings.Repeat("ä", 200)), strings.Repeat("ä", 200)},
		{cut(strings.Repeat("ä", 201)), strings.Repeat("ä", 200) + "…"},
	} {
		if got := strings.NewReplacer("\u00a0", "_", "\u202f", "_").Replace(test.got); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	for size, want := range map[Size]int{{}: 0, {Bytes: 1}: 0, {Bytes: 1, Bound: 1 << 40}: 1, {Bytes: 50, Bound: 100}: 50, {Bytes: 300, Bound: 100}: 100} {
		if got := full(size); got != want {
			t.Errorf("%+v is %d%% full, want %d", size, got, want)
		}
	}
}

// FuzzCut: a text becomes short, valid and printable.
func FuzzCut(f *testing.F) {
	f.Add("Disallow: /private/")
	f.Add(strings.Repeat("\U0001F600", 201) + "\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := cut(s)
		if n := utf8.RuneCountInString(got); n > maxText+1 || !utf8.ValidString(got) {
			t.Errorf("%q becomes %d characters: %q", s, n, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q has an unprintable character at %d: %q", s, i, got)
		}
	})
}

func TestChart(t *testing.T) {
	minutes := make([]overview.Minute, overview.Minutes)
	minutes[3].Counts = overview.Counts{Allowed: 1, Undecided: 50}
	minutes[7].Counts = overview.Counts{Allowed: 9000, Denied: 1, Reported: 500}
	c := draw(minutes)
	if c.Peak != 9501 || c.Max != 10_000 || c.Half() != 5000 || len(c.Bars) != overview.Minutes {
		t.Errorf("got peak %d of %d, %d bars", c.Peak, c.Max, len(c.Bars))
	}
	for i, b := range c.Bars {
		var got strings.Builder
		for _, p := range b.Parts {
			got.WriteString(p.Class + " " + p.Y + "+" + p.Height + " ")
		}
		want := map[int]string{3: "allowed 98.50+1.50 ", 7: "denied 98.50+1.50 reported 93.50+5.00 allowed 3.50+90.00 "}[i]
		if got.String() != want || b.X != 10*i {
			t.Errorf("bar %d at %d: got %q, want %q", i, b.X, got.String(), want)
		}
	}
	for n, want := range map[uint64]uint64{0: 2, 1: 2, 2: 2, 3: 4, 10: 10, 11: 20, 81: 100, 1 << 40: 2_000_000_000_000} {
		if got := roundUp(n); got != want {
			t.Errorf("%d is rounded to %d, want %d", n, got, want)
		}
	}
}
