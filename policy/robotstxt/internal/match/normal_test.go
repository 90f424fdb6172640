package match

import "testing"

func TestNormalPath(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"", ""},
		{"/", "/"},
		{"/a/b?c=d&e=%2F;f", "/a/b?c=d&e=%2F;f"},

		// Bytes that may not stand in a URL.
		{"/ツ", "/%E3%83%84"},
		{"/\xff", "/%FF"},
		{"/\x00\x1f\x7f", "/%00%1F%7F"},
		{"/ \"<>\\^`{|}", "/%20%22%3C%3E%5C%5E%60%7B%7C%7D"},
		{"/#", "/#"},

		// Hex digits.
		{"/%e3%83%84", "/%E3%83%84"},
		{"/%E3%83%84", "/%E3%83%84"},
		{"/%3c%3C", "/%3C%3C"},

		// Unreserved characters.
		{"/%7E%7ejoe", "/~~joe"},
		{"/%41%5A%61%7a%30%39%2d%2E%5f%7E", "/AZaz09-._~"},

		// Reserved ones.
		{"/%2f%3a%3F%23%5b%5D%40", "/%2F%3A%3F%23%5B%5D%40"},
		{"/%21%24%26%27%28%29%2A%2B%2C%3B%3D", "/%21%24%26%27%28%29%2A%2B%2C%3B%3D"},
		{"/:?[]@!&'()+,;=", "/:?[]@!&'()+,;="},
		{"/%25", "/%25"},

		// Wildcards.
		{"/a*b$", "/a%2Ab%24"},

		// Malformed.
		{"/%", "/%"},
		{"/%4", "/%4"},
		{"/%zz%4g%g4", "/%zz%4g%g4"},
		{"/%%41", "/%A"},
		{"/%%41g", "/%Ag"},
		{"/%%41B", "/%A%42"},
		{"/%%41%42", "/%A%42"},
		{"/%A%42", "/%A%42"},
		{"/%%37E", "/%7%45"},
		{"/%%%341", "/%%4%31"},
		{"/%%7E", "/%~"},
		{"/%4%31", "/%4%31"},
		{"/%4%7E", "/%4~"},
		{"/%4x%31", "/%4x1"},
		{"/%é", "/%%C3%A9"},
		{"/%e%e9", "/%e%E9"},
	} {
		if got := NormalPath(test.path); got != test.want {
			t.Errorf("%q: got %q, want %q", test.path, got, test.want)
		}
		if got := NormalPath(test.want); got != test.want {
			t.Errorf("%q: got %q, want it unchanged", test.want, got)
		}
	}
}

func TestNormalPattern(t *testing.T) {
	for _, test := range []struct{ pattern, want string }{
		{"/a", "/a"},
		{"/a*b*", "/a*b*"},
		{"/a$", "/a$"},
		{"/a*$", "/a*$"},
		{"/a$b", "/a%24b"},
		{"/$a$", "/%24a$"},
		{"/a$$", "/a%24$"},
		{"/a$*", "/a%24*"},
		{"/%24", "/%24"},
		{"/%2a", "/%2A"},
		{"/%7e$", "/~$"},
		{"/ä b", "/%C3%A4%20b"},
	} {
		if got := Normal(test.pattern); got != test.want {
			t.Errorf("%q: got %q, want %q", test.pattern, got, test.want)
		}
	}
}

func TestEncodeQuery(t *testing.T) {
	for _, test := range []struct {
		path, want string
		compares   bool // as a pattern, a second time
	}{
		{"/a:/@[]", "/a:/@[]", false},
		{"/a?b=c", "/a?b=c", false},
		{"/a?b=:/?@[]c", "/a?b=%3A%2F%3F%40%5B%5Dc", true},
		{"/a:b?", "/a:b?", false},
		{"/a%2Fb?c", "/a%2Fb?c", false},
		{"/a?b%2F", "/a?b%2F", true},
		{"/*%3A", "/*%3A", true},
		{"/*:", "/*:", false},
		{"/*/?", "/*/?", false},
		{"/*/?/", "/*/?%2F", true},
		{"/a?b%2", "/a?b%2", false},
	} {
		if got := EncodeQuery(test.path); got != test.want {
			t.Errorf("%q: got %q, want %q", test.path, got, test.want)
		}
		if got := ComparesQuery(test.path); got != test.compares {
			t.Errorf("%q compares a second time: got %v", test.path, got)
		}
	}
}
