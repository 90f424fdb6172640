package audit

import (
	"testing"
	"time"

	"robotsgate/internal/record"
)

func TestFilterHost(t *testing.T) {
	for _, test := range []struct {
		pattern, origin string
		want            bool
	}{
		{"shop.example", "https://shop.example", true},
		{"SHOP.example", "http://shop.example:8080", true},
		{"shop.example", "http://www.shop.example", false},
		{"*.example", "http://www.shop.example", true},
		{"shop.example:443", "https://shop.example", true},
		{"shop.example:443", "http://shop.example", false},
		{"shop.example:80", "http://shop.example", true},
		{"*:8080", "http://shop.example:8080", true},
		{"bücher.example", "http://xn--bcher-kva.example", true},
		{"::1", "http://[::1]:8080", true},
		{"[::1]:8080", "http://[::1]:8080", true},
		{"[::1]:8080", "http://[::1]", false},
		{"192.0.2.*", "http://192.0.2.7", true},
		{"shop.example", "", false}, // the entry has a URL that could not be parsed
	} {
		p, err := ParseHostPattern(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got := (&Filter{Host: p}).Selects(&record.Record{Origin: test.origin}); got != test.want {
			t.Errorf("%s and %s: got %v, want %v", test.pattern, test.origin, got, test.want)
		}
	}
	for _, bad := range []string{"", "http://shop.example", "shop.example/x", "shop.example:x"} {
		if _, err := ParseHostPattern(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestFilterURL(t *testing.T) {
	shop := func(path string) *record.Record { return &record.Record{Origin: "https://shop.example", Path: path} }
	redacted := shop("/x?key=*&q=*")
	redacted.Redacted = true
	for _, test := range []struct {
		pattern string
		entry   *record.Record
		want    bool
	}{
		{"https://shop.example/x", shop("/x"), true},
		{"https://shop.example/x", shop("/x?a"), false},
		{"https://shop.example/x*", shop("/x?a"), true},
		{"http://shop.example/x", shop("/x"), false},
		{"HTTPS://Shop.Example:443/a/../x#top", shop("/x"), true}, // as the gate writes it
		{"shop.example/x", shop("/x"), true},
		{"shop.example", shop("/"), true},
		{"*.example/*", shop("/x"), true},
		{"https://shop.example/*", shop(""), true}, // a passthrough tunnel
		{"https://shop.example/x?key=1&q=2", redacted, true},
		{"https://shop.example/x?other=1", redacted, false},
		{"https://shop.example/x?key=1&q=2", shop("/x?key=*&q=*"), false},
		{"http://exa mple/", &record.Record{URL: "http://exa mple/"}, true}, // what the client sent
	} {
		p, err := ParseURLPattern(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got := (&Filter{URL: p}).Selects(test.entry); got != test.want {
			t.Errorf("%s and %+v: got %v, want %v", test.pattern, test.entry, got, test.want)
		}
	}
}

func TestFilterTimes(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f := Filter{Since: noon, Until: noon.Add(time.Second)}
	for after, want := range map[time.Duration]bool{-1: false, 0: true, time.Second - 1: true, time.Second: false} {
		if got := f.Selects(&record.Record{Time: noon.Add(after)}); got != want {
			t.Errorf("%v after the beginning: got %v, want %v", after, got, want)
		}
	}
}

// TestPrintable: the line of an entry that no gate has written can't control a terminal, and the line
// of one that a gate has written stays as it is.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"A","error":"\u001b[31mé"}`:              `{"id":"A","error":"\u001b[31mé"}`,
		"{\"id\":\"A\",\r\t\"error\":\"a b\u202ec\"}\r": `{"id":"A","error":"a b\u202ec"}`,
		"{\"id\":\"\x9b31m\"}":                          "{\"id\":\"\uFFFD31m\"}",
	} {
		l := Line{Text: []byte(text)}
		if got := string(l.Printable()); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
