package robotstxt

import (
	"slices"
	"strings"
	"testing"
)

func TestReadings(t *testing.T) {
	for _, test := range []struct {
		path string
		want []string
	}{
		{"/", nil},
		{"/private/x", nil},
		{"/a.b,c=d:e@f!/%20%7E%252F", nil},
		{"/a?b=//c;d%2F%5C", nil},

		{"//private/x", []string{"/private/x"}},
		{"///a////b//", []string{"/a/b/"}},
		{"/private%2Fx", []string{"/private/x"}},
		{"/private%2fx?a=%2F//", []string{"/private/x?a=%2F//"}},
		{"/%2Fprivate/x", []string{"/private/x"}},
		{"/private%5Cx", []string{"/private/x"}},
		{`/private\x`, []string{"/private/x"}}, // only check judges such a path
		{"/private%255Cx", nil},
		{"/public/..%2Fprivate/x", []string{"/private/x"}},
		{"/public%2F%2E%2e/private/x", []string{"/private/x"}},
		{"/private%2f%2Fx", []string{"/private/x"}},

		{"/private;v=1/x", []string{"/private/x"}},
		{"/private/x;y?z;w", []string{"/private/x?z;w"}},
		{"/public/..;/private/x", []string{"/private/x"}},
		{"/;/private/x", []string{"//private/x", "/private/x"}},
		{"/a;b//c", []string{"/a;b/c", "/a//c", "/a/c"}},
		{"/a;b%2Fc", []string{"/a;b/c", "/a", "/a/c"}},
		{"/private;", []string{"/private"}},
		{"/;", []string{"/"}},
	} {
		if got := Readings(test.path); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.path, got, test.want)
		}
	}
}

func TestHidesDotSegment(t *testing.T) {
	for path, want := range map[string]bool{
		"/..%2Fa":         true,
		"/a%2f..":         true,
		"/a/.%5Cb":        true,
		"/a%5c%2E%2e%5cb": true,
		"/a%2F.%2Fb":      true,
		"/%2e%2fa":        true,
		"/a%2Fb":          false,
		"/a%2F..b":        false,
		"/a%2F...%2Fb":    false,
		"/a?..%2Fb":       false,
		"/a/..;/b":        false, // readings without parameters are judged instead
		"/a..%252Fb":      false,
		"/":               false,
	} {
		if got := HidesDotSegment(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestSpeaksFor(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"/private%2fok", "/private%2Fok", true},
		{"/a//b", "/a//b", true},
		{"/*;jsessionid", "/private;jsessionid=1/x", true},
		{"/*;jsessionid", "/private%2Fx;jsessionid=1", false}, // it says nothing about %2F
		{"/a%5Cb", "/a%2Fb", false},
		{"/a", "/a", false},
		{"/a?;", "/a;", false},
	} {
		if got := (Rule{Allow: true, Pattern: test.pattern}).SpeaksFor(test.path); got != test.want {
			t.Errorf("%s for %s: got %v, want %v", test.pattern, test.path, got, test.want)
		}
	}
}

// FuzzReadings checks that the readings are few, keep the query, and hold nothing more
// that a server of their kind would read otherwise.
func FuzzReadings(f *testing.F) {
	for _, path := range []string{"/a/..%2Fb//c;d/%5c.?e//f", "/;%2f;/..;/", "//", "/%2f%2F;"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		readings := Readings(path)
		if len(readings) > 4 {
			t.Errorf("%d readings", len(readings))
		}
		bare, query, _ := strings.Cut(path, "?")
		for i, reading := range readings {
			got, gotQuery, _ := strings.Cut(reading, "?")
			if gotQuery != query || !strings.HasPrefix(got, "/") || len(got) > len(bare) || reading == path {
				t.Errorf("%q is read as %q", path, reading)
			}
			if hasDotSegment(got) {
				t.Errorf("%q is read as %q, with a dot segment", path, reading)
			}
			if i == len(readings)-1 && strings.Contains(got, ";") && !strings.Contains(bare, ";") {
				t.Errorf("%q is read as %q, with a parameter", path, reading)
			}
		}
		if spellingsIn(path) != 0 && len(readings) > 0 {
			first, _, _ := strings.Cut(readings[0], "?")
			if first != bare && spellingsIn(path)&parameter == 0 && spellingsIn(first) != 0 {
				t.Errorf("%q is read as %q, which can be read otherwise", path, first)
			}
		}
	})
}

func BenchmarkReadings(b *testing.B) {
	for name, path := range map[string]string{
		"ordinary":  "/shop/category/shoes/page.html?size=42&sort=price",
		"all kinds": "/shop//category%2Fshoes;v=1/page.html?size=42&sort=price",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Readings(path)
			}
		})
	}
}
