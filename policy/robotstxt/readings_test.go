package robotstxt

import (
	"net/url"
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
		{"/a.b,c=d:e@f!/%20%7Ex", nil},
		{"/%D0%BF%D1%83%D1%82%D1%8C/%E4%B8%AD/%F0%9F%98%80?%E9", nil},
		{"/%2A%24%7Bx%7D/a%20b", nil}, // as in the normal form
		{"/a?b=//c;d%2F%5C%25", nil},

		{"//private/x", []string{"/private/x", "/x"}},
		{"//name/private//x", []string{"/name/private/x", "/private/x", "/private//x"}},
		{"///a////b//", []string{"/a/b/", "/b/", "////b//"}},
		{"///name/private/x", []string{"/name/private/x", "/private/x"}}, // JavaScript's new URL(path, base)
		{"//name%5Cprivate/x", []string{"/name/private/x", "/name%5Cprivate/x", "/x", "/private/x", "//name/private/x"}},
		{"//a", []string{"/a"}},
		{"/private%2Fx", []string{"/private/x"}},
		{"/private%2fx?a=%2F//", []string{"/private/x?a=%2F//"}},
		{"/%2Fprivate/x", []string{"/private/x", "/x", "//private/x"}},
		{"/go/http:%2F/x", []string{"/go/http:/x", "/go/http://x"}},
		{"//a%2Fb", []string{"/a/b", "/a%2Fb", "/b", "//a/b"}}, // Apache httpd, AllowEncodedSlashes NoDecode
		{"/private%5Cx", []string{"/private/x"}},
		{`/private\x`, []string{"/private/x", "/private%5Cx"}},              // only check judges such a path
		{"/a%5Cx%2F..%2Fprivate/x", []string{"/a/private/x", "/private/x"}}, // the last one where a backslash is no slash
		{"/a%255Cx/.%252E/private/x", []string{"/a/private/x", "/private/x"}},
		{"/public/..%2Fprivate/x", []string{"/private/x"}},
		{"/public%2F%2E%2e/private/x", []string{"/private/x"}},
		{"/private/%2F..//x", []string{"/x", "/private/%2F../x", "/private//x", "/private/x"}}, // the last one to Jetty

		{"/private;v=1/x", []string{"/private/x"}},
		{"/private/x;y?z;w", []string{"/private/x?z;w"}},
		{"/public/..;/private/x", []string{"/private/x"}},
		{"/;/private/x", []string{"/private/x", "//private/x"}},
		{"/a;b//c", []string{"/a;b/c", "/a/c", "/a//c"}},
		{"/a;b%2Fc", []string{"/a;b/c", "/a", "/a/c"}}, // "/a" to Tomcat, "/a/c" to Tomcat behind nginx
		{"/private;", []string{"/private"}},
		{"/;", []string{"/"}},
		{"/public/..%3B/private/x", []string{"/public/..;/private/x", "/private/x"}},
		{"/private%3bx%2Fy", []string{"/private;x/y", "/private/y"}},

		{"/private%3B%23/x", []string{"/private;%23/x", "/private;", "/private/x", "/private"}},

		{"/plus%2Bsign%40", []string{"/plus+sign@"}},
		{"/What%3F", []string{"/What"}},
		{"/a%3fb", []string{"/a%3Fb", "/a", "/a?b"}},
		{"/a%3Fb=1?c=2", []string{"/a?c=2", "/a?b=1", "/a?b=1?c=2", "/a?b=1&c=2"}},
		{"/a%3Fb%3d%2B%3f%26%23c?", []string{"/a%3Fb=+%3F&%23c?", "/a?", "/a?b=+?&"}},
		{"/a%252F%3Fb=%252C?c", []string{"/a/?c", "/a/?b=%2C", "/a/?b=%2C?c", "/a/?b=%2C&c", "/a%252F?b=%2C", "/a%252F?b=%2C?c", "/a%252F?b=%2C&c"}},
		{"/a;%3Fb", []string{"/a;", "/a", "/a;?b", "/a?b"}},
		{"/a%23b%3Fc", []string{"/a", "/a?c", "/a%23b?c"}}, // nginx, Apache httpd
		{"/a%253Fb", []string{"/a%3Fb"}},                   // the query of a third server
		{"/a%23b%20", []string{"/a"}},
		{"/x%0a", []string{"/x%0A", "/x"}},
		{"/x%00.html", []string{"/x"}},
		{"/x%20?y", []string{"/x?y"}},
		{"/100%25", nil},
		{"/100%25/x", nil},
		{"/%2570rivate", []string{"/private"}},
		{"/private%252Fx", []string{"/private/x"}},
		{"/private%255Cx", []string{"/private/x", "/private%5Cx"}},
		{"/public/%252e%252E/private", []string{"/private"}},
		{"/%25252e", []string{"/%252e"}},
		{"/%25u0070rivate", []string{"/private"}},
		{"/caf%E9", []string{"/café"}},
		{"/caf%e9/%C3%A9", []string{"/caf%E9/%C3%A9", "/café/Ã©"}},
		{"/caf%25C3%A9", []string{"/caf%25C3\u00a9", "/caf%C3%A9"}},
	} {
		var got []string
		for _, r := range Readings(test.path) {
			if !r.EqualDelims {
				got = append(got, r.Path)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.path, got, test.want)
		}
	}
}

// TestEqualDelims: a program that decodes its query takes the encoded sub-delims of a URL, or of a rule, for
// the same as plain ones. & and = and + and # differ from their escapes, and * in a URL is no wildcard.
func TestEqualDelims(t *testing.T) {
	for _, test := range []struct {
		rule, path string
		denied     bool // in some reading
	}{
		{"/*sort=a,b", "/x?sort=a%2Cb", true},
		{"/*sort=a%2cb", "/x?sort=a,b", true},
		{"/*id=(1)", "/x?a=1&id=%281%29", true},
		{"/x?q=(a%2Cb)", "/x?q=%28a,b%29", true},
		{"/x?t=!':;$*", "/x?t=%21%27%3a%3b%24%2A", true},
		{"/x?u=http://a,b", "/x?u=http%3A%2F%2Fa%2Cb", true}, // and as RFC 9309, 2.2.2 has it
		{"/*sort=a,b", "//x%2Fy?sort=a%2Cb", true},
		{"/*?sort=a,b", "/x%3Fsort=a%252Cb", true},
		{"/*c=a&b", "/x?c=a%26b", false},
		{"/*c=", "/x?c%3D1", false},
		{"/*c=a+b", "/x?c=a%2Bb", false},
		{"/*c=%23", "/x?c=", false},
		{"/*c=a%2Ab,", "/x?c=aXb%2C", false},
		{"/*c=a,*b$", "/x?c=a%2C%2Ab", true},
		{"/*c=a,%2Ab", "/x?c=a%2CXb", false},
		{"/a%2Cb?c", "/a,b?c=,", false},
	} {
		f := Parse([]byte("User-agent: *\nDisallow: "+test.rule), 0)
		denied := false
		for _, r := range Readings(test.path) {
			v := f.DecideWithin(new(Thorough()), r, "a")
			_, ok := f.Group("a").MatchReading(r)
			matches := new(Thorough()).PathMatcher(r).Matches(NewPattern(test.rule))
			if ok == v.Allowed || matches == v.Allowed {
				t.Errorf("%s, %v: allowed %v, but matches %v, %v", test.rule, r, v.Allowed, ok, matches)
			}
			if denied = denied || !v.Allowed; !v.Allowed && r.Path == test.path {
				t.Errorf("%s: read as itself", test.path)
			}
		}
		if denied != test.denied {
			t.Errorf("%s, %s: denied %v, want %v", test.rule, test.path, denied, test.denied)
		}
		if v := f.Decide(test.path, "a"); !v.Allowed {
			t.Errorf("%s, %s: denied as RFC 9309 reads it", test.rule, test.path)
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

func TestSpellsLike(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"/private%2fok", "/private%2Fok", true},
		{"/docs;v=1/", "/docs;v=1/x", true},
		{"/docs;v=1/", "/docs;v=1/x;y", false}, // it has one parameter
		{"/docs;v=1/*;", "/docs;v=1/..;/private/x", false},
		{"/docs%25/", "/docs%25/%252e%252e", false},
		{"/*%25", "/docs/%252e./x", false},
		{"/*;*%3B", "/docs;/..%3B/x", false},
		{"/Special%3A", "/Special%3ASearch", true},
		{"/a//b", "/a//b", true},
		{"/*;jsessionid", "/private;jsessionid=1/x", true},
		{"/*;jsessionid", "/private%2Fx;jsessionid=1", false}, // it says nothing about %2F
		{"/a%5Cb", "/a%2Fb", false},
		{"/a", "/a", false},
		{"/a?;", "/a;", false},
	} {
		if got := (Rule{Allow: true, Pattern: test.pattern}).SpellsLike(test.path); got != test.want {
			t.Errorf("%s for %s: got %v, want %v", test.pattern, test.path, got, test.want)
		}
	}
}

// FuzzReadings checks that the readings are few, keep the query, and cannot be decoded
// again. With a percent sign that begins no escape they can be: /%2%66 is read as /%2f. The gate
// refuses such URLs.
func FuzzReadings(f *testing.F) {
	for _, path := range []string{"/a/..%2Fb//c;d/%5c.?e//f", "/;%2f;/..;/", "//", "/%2f%2F;", "/%2%66;"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		readings := Readings(path)
		if len(readings) > maxReadings {
			t.Errorf("%d readings", len(readings))
		}
		bare, query, _ := strings.Cut(path, "?")
		_, malformed := url.PathUnescape(bare)
		first := slices.IndexFunc(readings, func(r Reading) bool { return !r.EqualDelims })
		for i, r := range readings {
			reading := r.Path
			got, gotQuery, _ := strings.Cut(reading, "?")
			if r.OnlyQuery {
				if got != bare || reading == path {
					t.Errorf("%q is read as %q", path, reading)
				}
				continue
			}
			if gotQuery != query && !r.EqualDelims && !strings.Contains(strings.ToUpper(bare), "%3F") || !strings.HasPrefix(got, "/") || reading == path {
				t.Errorf("%q is read as %q", path, reading)
			}
			if hasDotSegment(got) {
				t.Errorf("%q is read as %q, with a dot segment", path, reading)
			}
			if found := spellingsIn(got); malformed == nil && i == first && found[encodedSlash]+found[backslash]+found[encodedReserved] > 0 && spellingsIn(path)[opaque] == 0 {
				t.Errorf("%q is read as %q, which can be decoded", path, reading)
			}
		}
	})
}

func BenchmarkReadings(b *testing.B) {
	for name, path := range map[string]string{
		"ordinary":  "/shop/category/shoes/page.html?size=42&sort=price",
		"encoded":   "/%D0%BC%D0%B0%D0%B3%D0%B0%D0%B7%D0%B8%D0%BD/%D0%BE%D0%B1%D1%83%D0%B2%D1%8C",
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
