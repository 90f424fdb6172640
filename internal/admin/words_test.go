package admin

import (
	"strings"
	"testing"
	"time"
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
