package auditreport

import (
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string][2]string{
		"24h":                       {"2026-02-28T12:00:00Z", "2026-02-28T12:00:00Z"},
		"0s":                        {"2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"},
		"2026-02-28":                {"2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		"2026-02-28 15:04:05":       {"2026-02-28T15:04:05Z", "2026-02-28T15:04:06Z"},
		"2026-02-28T15:04:05+01:00": {"2026-02-28T14:04:05Z", "2026-02-28T14:04:06Z"},
		"2026-02-28T15:04:05.5Z":    {"2026-02-28T15:04:05.5Z", "2026-02-28T15:04:05.500000001Z"},
		"-24h":                      {},
		"28.02.2026":                {},
		"":                          {},
	} {
		begin, end, err := parseMoment(text, now)
		if want[0] == "" {
			if err == nil {
				t.Errorf("%q: no error", text)
			}
			continue
		}
		if got := [2]string{begin.UTC().Format(time.RFC3339Nano), end.UTC().Format(time.RFC3339Nano)}; err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}
