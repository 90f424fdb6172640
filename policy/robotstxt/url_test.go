package robotstxt

import "testing"

func TestPathOf(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"", "/"},
		{"http://www.example.com", "/"},
		{"http://www.example.com/", "/"},
		{"http://www.example.com/a", "/a"},
		{"http://www.example.com/a/", "/a/"},
		{"http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"},
		{"http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"},
		{"HTTPS://EXAMPLE.COM/A", "/A"},
		{"ftp://example.com/a", "/a"},
		{"http:///a", "/a"},

		// No scheme.
		{"example.com", "/"},
		{"example.com/", "/"},
		{"example.com/a", "/a"},
		{"example.com:8080/a", "/a"},
		{"example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"},
		{"example.com/http://a", "/http://a"},
		{"a", "/"},
		{"a/", "/"},
		{"a/b", "/b"},
		{"/a", "/a"},
		{"/a?u=http://b/c", "/a?u=http://b/c"},
		{"//a/b/c", "/b/c"},
		{"//a", "/"},

		// No path.
		{"example.com?a", "/?a"},
		{"http://example.com?a/b", "/?a/b"},
		{"http://example.com;p", "/;p"},
		{"http://example.com#a/b", "/"},
		{"http://example.com?a=b@c", "/?a=b@c"},
		{"?a", "/?a"},
		{"#a", "/"},

		// Odd.
		{"example.com/a;b#c", "/a;b"},
		{"http://user:pass;word@example.com/a@b", "/a@b"},
		{"http://user@example.com:80/path;params?query#fragment", "/path;params?query"},
		{" http://example.com/a \r\n", "/a "},
		{"http://example.com/a b/ä", "/a b/ä"},
		{"http://[2001:db8::1]:80/a", "/a"},
		{"/a#b#c", "/a"},
		{"mailto:someone@example.com", "/"},
		{"://", "/"},
		{"//", "/"},
		{"///", "/"},

		// Dot segments.
		{"http://example.com/a/../b?c/../d", "/b?c/../d"},
		{"http://example.com/a/./?", "/a/?"},
		{"http://example.com/..", "/"},
		{"http://example.com//a", "//a"},
	} {
		if got := PathOf(test.url); got != test.want {
			t.Errorf("%q: got %q, want %q", test.url, got, test.want)
		}
	}
}

// TestRemoveDotSegments has the examples of RFC 3986, 5.2.4 and 5.4, among others.
func TestRemoveDotSegments(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"", "/"},
		{"/", "/"},
		{"a", "/a"},
		{"*", "/*"},
		{"/a/b/c", "/a/b/c"},
		{"/a/b/c/./../../g", "/a/g"},
		{"mid/content=5/../6", "/mid/6"},
		{"/.", "/"},
		{"/./", "/"},
		{"/..", "/"},
		{"/../", "/"},
		{"/../../a", "/a"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/a/b/..", "/a/"},
		{"/a/b/../", "/a/"},

		// Not dot segments.
		{"/.a/a./..a/a../...", "/.a/a./..a/a../..."},
		{"/a/.;b/..;c", "/a/.;b/..;c"},
		{"/%2f/%2e%2e%2fa", "/%2f/%2e%2e%2fa"},
		{"/%", "/%"},

		// Encoded.
		{"/a/%2e/b", "/a/b"},
		{"/a/%2E%2e/b", "/b"},
		{"/a/.%2E/b", "/b"},
		{"/a/%2e./b", "/b"},
		{"/a/%2e%2e", "/"},

		// Empty segments.
		{"//", "//"},
		{"//a//b", "//a//b"},
		{"/a//../b", "/a/b"},
		{"//../a", "/a"},
		{"/a/.//b", "/a//b"},
	} {
		if got := RemoveDotSegments(test.path); got != test.want {
			t.Errorf("%q: got %q, want %q", test.path, got, test.want)
		}
	}
}
