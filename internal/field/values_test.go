package field

import (
	"testing"
	"time"
)

func TestSizesAndDurations(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0B": 0, "1B": 1, "512KiB": 512 << 10, "512kib": 512 << 10, "64 MiB": 64 << 20, "1GB": 1e9, "2TiB": 2 << 40, "1500KB": 1_500_000,
	} {
		got, ok := ParseSize(text)
		if !ok || got != want {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
		if again, ok := ParseSize(Size(got)); !ok || again != got {
			t.Errorf("%s: Size gives %s", text, Size(got))
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 10 * time.Second: "10s"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v): got %s, want %s", d, got, want)
		}
		if got, err := time.ParseDuration(want); err != nil || got != d {
			t.Errorf("%s: got %v, %v", want, got, err)
		}
	}
}
