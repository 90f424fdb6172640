package robotstxt

import (
	"slices"
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

		{"//private/x", []string{"/private/x"}},
		{"///a////b//", []string{"/a/b/"}},
		{"/private%2Fx", []string{"/private/x"}},
		{"/private%2fx?a=%2F//", []string{"/private/x?a=%2F//"}},
		{"/%2Fprivate/x", []string{"/private/x"}},
		{"/private%5Cx", []string{"/private/x"}},
		{`/private\x`, []string{"/private/x"}}, // only check judges such a path
		{"/public/..%2Fprivate/x", []string{"/private/x"}},
		{"/public%2F%2E%2e/private/x", []string{"/private/x"}},
		{"/private/%2F..//x", []string{"/x"}},

		{"/private;v=1/x", []string{"/private/x"}},
		{"/private/x;y?z;w", []string{"/private/x?z;w"}},
		{"/public/..;/private/x", []string{"/private/x"}},
		{"/;/private/x", []string{"/private/x"}},
		{"/a;b//c", []string{"/a;b/c", "/a/c"}},
		{"/a;b%2Fc", []string{"/a;b/c", "/a/c"}},
		{"/private;", []string{"/private"}},
		{"/;", []string{"/"}},
		{"/private%3bx/y", []string{"/private;x/y", "/private/y"}},
		{"/private%3bx%2Fy", []string{"/private;x/y", "/private/y"}},

		{"/What%3F", []string{"/What?"}},
		{"/q%253Fsession=1", []string{"/q?session=1"}},
		{"/q%25253fsession%3D1", []string{"/q?session=1"}},
		{"/a%3Fb=1?c=2", []string{"/a?b=1&c=2"}},
		{"/a%3Fb%3d%2B%3f%26%23c?", []string{"/a?b=+?&%23c&"}},
		{"/a;x%3Fb;c", []string{"/a;x?b;c", "/a?b;c"}},
		{"/a%23b//%C3%a9 ", []string{"/a%23b/%C3%A9%20"}},
		{"/100%25", nil},
		{"/100%25/x", nil},
		{"/%2570rivate", []string{"/private"}},
		{"/%252570rivate", []string{"/private"}},
		{"/%25252570rivate", []string{"/%2570rivate"}}, // three times at most
		{"/private%252Fx", []string{"/private/x"}},
		{"/public/%252e%252E/private", []string{"/private"}},
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

func TestSpellsLike(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"/private%2fok", "/private%2Fok", true},
		{"/docs;v=1/", "/docs;v=1/x", true},
		{"/docs;v=1/", "/docs;v=1/x;y", false}, // it has one parameter
		{"/docs;v=1/*;", "/docs;v=1/..;/private/x", false},
		{"/docs%25/*%25", "/docs%25/%252e%252e", false},
		{"/*%25", "/docs/%252e./x", false},
		{"/*;*%3B", "/docs;/..%3B/x", false},
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
