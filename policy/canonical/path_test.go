package canonical

import "testing"

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
