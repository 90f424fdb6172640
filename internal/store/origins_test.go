package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"robotsgate/policy"
)

// TestOriginsInOrder: origins are listed by the name of their host, those of a host together.
func TestOriginsInOrder(t *testing.T) {
	records := map[string]policy.Record{}
	for _, s := range []policy.Scope{
		{Origin: "https://a.example"}, {Origin: "http://b.example", Crawlers: true}, {Origin: "https://b.example"}, {Origin: "https://b.example", Crawlers: true},
		{Origin: "https://b.example", Slot: "/bot"}, {Origin: "http://b.example:81"}, {Origin: "http://b-.example"}, {Origin: "http://c.example"},
	} {
		records[s.Key()] = good("x")
	}
	disk, _ := open(t, t.TempDir())
	want := "[http://b.example https://b.example http://b.example:81]"
	for _, s := range []policy.Store{disk, NewMemory(1 << 20)} {
		save(t, s, records)
		got, next, err := s.Origins(t.Context(), "", "b.", 3)
		if err != nil || fmt.Sprint(got) != want || next != "c.example" {
			t.Errorf("%T: got %v, %q, %v; want %s", s, got, next, err, want)
		}
		if got, next, err := s.Origins(t.Context(), "", "no host\x00", 3); err != nil || len(got) != 0 || next != "" {
			t.Errorf("%T: after the last host: got %v, %q, %v", s, got, next, err)
		}
	}
}

// TestOriginsOfMany: a search among many hosts looks at a part of them, and goes on from there.
func TestOriginsOfMany(t *testing.T) {
	disk, _ := open(t, t.TempDir())
	records := map[string]policy.Record{"https://z.example": failed(1)}
	for i := range maxHosts {
		records[fmt.Sprintf("https://h%d.example", i)] = failed(1)
	}
	save(t, disk, records)
	began := time.Now()
	got, next, err := disk.Origins(t.Context(), "z.", "", 10)
	t.Logf("%d hosts in %v", maxHosts, time.Since(began))
	if err != nil || len(got) != 0 || next != "z.example" {
		t.Fatalf("the first part: got %v, %q, %v", got, next, err)
	}
	if got, next, err := disk.Origins(t.Context(), "z.", next, 10); err != nil || !slices.Equal(got, []string{"https://z.example"}) || next != "" {
		t.Errorf("the second part: got %v, %q, %v", got, next, err)
	}
}
