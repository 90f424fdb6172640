package canonical

import (
	"strings"
	"testing"
)

// TestHosts: each host has one spelling, and a host that could be read in two ways is an
// error. An empty want is an error.
func TestHosts(t *testing.T) {
	for _, test := range []struct{ authority, want string }{
		{"example.com", "example.com"},
		{"EXAMPLE.Com", "example.com"},
		{"example.com.", "example.com"},
		{"example.com..", ""},
		{".example.com", ""},
		{"a..b", ""},
		{".", ""},
		{"", ""},
		{":80", ""},
		{"localhost", "localhost"},
		{"my_host.example", "my_host.example"},
		{"-a-.example", "-a-.example"},
		{"exa mple.com", ""},
		{"exa%6Dple.com", ""},
		{"exa*mple.com", ""},
		{"example.com;x", ""},
		{"example.com/x", ""},
		{"example.com\\x", ""},
		{"example.com\x00", ""},
		{"exam\tple.com", ""},
		{"a,b", ""},
		{strings.Repeat("a", 63) + ".example", strings.Repeat("a", 63) + ".example"},
		{strings.Repeat("a", 64) + ".example", ""},
		{strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 126) + "a"},
		{strings.Repeat("a.", 127) + "a", ""},

		// International names (RFC 5891, UTS 46).
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"},
		{"bu\u0308cher.example", "xn--bcher-kva.example"}, // u and a combining diaeresis
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"faß.example", "xn--fa-hia.example"},
		{"例え.テスト", "xn--r8jz45g.xn--zckzah"},
		{"例え。テスト", "xn--r8jz45g.xn--zckzah"},
		{"ｅｘａｍｐｌｅ．ｃｏｍ", "example.com"},
		{"exam\u00adple.com", "example.com"}, // a soft hyphen
		{"ex\u200bample.com", "example.com"},
		{"℀.example", ""},   // maps to a/c
		{"a＃b.example", ""}, // maps to a#b
		{"\xff.example", ""},
		{"a\u202eb.example", ""},

		// IPv4: only as it is always written.
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1.", "192.0.2.1"},
		{"１９２.０.２.１", "192.0.2.1"},
		{"2130706433", ""},
		{"0x7f000001", ""},
		{"0X7F.0.0.1", ""},
		{"0x7f.1", ""},
		{"127.1", ""},
		{"127.0.1", ""},
		{"0177.0.0.1", ""},
		{"127.0.0.01", ""},
		{"127.0.0.256", ""},
		{"1.2.3.4.5", ""},
		{"example.1", ""},
		{"example.0x", ""},
		{"example.0x1g", "example.0x1g"},
		{"1.example", "1.example"},
		{"127.0.0.1.example", "127.0.0.1.example"},

		// IPv6.
		{"[::1]", "[::1]"},
		{"[0:0:0:0:0:0:0:1]", "[::1]"},
		{"[2001:DB8::00A]", "[2001:db8::a]"},
		{"[::ffff:192.0.2.1]", "192.0.2.1"},
		{"[::ffff:c000:201]", "192.0.2.1"},
		{"[fe80::1%eth0]", ""},
		{"[fe80::1%25eth0]", ""},
		{"[192.0.2.1]", ""},
		{"[v1.x]", ""},
		{"[::1", ""},
		{"::1]", ""},
		{"::1", ""},
		{"[]", ""},
		{"[[::1]]", ""},
		{"[::1]x", ""},
		{"[::1]80", ""},

		// Ports. The scheme's own is left out.
		{"example.com:", "example.com"},
		{"example.com:80", "example.com"},
		{"example.com:0080", "example.com"},
		{"example.com:443", "example.com:443"},
		{"example.com:08080", "example.com:8080"},
		{"example.com:65535", "example.com:65535"},
		{"example.com:65536", ""},
		{"example.com:0", ""},
		{"example.com:-1", ""},
		{"example.com:+80", ""},
		{"example.com:8_0", ""},
		{"example.com:http", ""},
		{"example.com:80:80", ""},
		{"example.com: 80", ""},
		{"example.com:８０", ""},
		{"[::1]:80", "[::1]"},
		{"[::1]:8080", "[::1]:8080"},
		{"[::1]:", "[::1]"},

		// Logins belong in a header.
		{"me@example.com", ""},
		{"me:secret@example.com", ""},
		{"@example.com", ""},
	} {
		got, err := ParseTarget("http", test.authority, "/")
		if got.Host != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: got %q, %v, want %q", test.authority, got.Host, err, test.want)
		}
	}
}

func TestSchemes(t *testing.T) {
	for scheme, want := range map[string]string{
		"http": "http://a:443", "https": "https://a", "HTTP": "http://a:443", "hTTpS": "https://a",
		"ftp": "", "": "", "ws": "", "http:": "", " http": "",
	} {
		got, err := ParseTarget(scheme, "a:443", "/")
		if err == nil && got.Origin() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", scheme, got.Origin(), err, want)
		}
	}
}

// TestPaths: the path that is judged is the one that is sent. An empty want is an error.
func TestPaths(t *testing.T) {
	for _, test := range []struct{ uri, want string }{
		{"/", "/"},
		{"/a/b?c=d&e", "/a/b?c=d&e"},
		{"", ""},
		{"*", ""},
		{"a", ""},
		{"?x", ""},

		// Unchanged: signed URLs break when they are rewritten.
		{"/%7e%2f%2F%41?%7e=%2f", "/%7e%2f%2F%41?%7e=%2f"},
		{"//a//b//", "//a//b//"},
		{"/a;b=c,d'(e)!$&*+:@[f]", "/a;b=c,d'(e)!$&*+:@[f]"},
		{"/?", "/?"},
		{"/a??b?", "/a??b?"},
		{"/%5C%00%23%20", "/%5C%00%23%20"},

		// Dot segments, once, in the path only.
		{"/.", "/"},
		{"/..", "/"},
		{"/a/./b/../c", "/a/c"},
		{"/a/b/..", "/a/"},
		{"/a/b/.", "/a/b/"},
		{"/../../a", "/a"},
		{"/a/%2e%2E/b", "/b"},
		{"/a/.%2e/b", "/b"},
		{"/%2e/a", "/a"},
		{"/a/%252e%252e/b", "/a/%252e%252e/b"},
		{"/a//../b", "/a/b"},
		{"/.//a", "//a"},
		{"/a/.../b", "/a/.../b"},
		{"/a/..b/.c", "/a/..b/.c"},
		{"/a/..;/b", "/a/..;/b"},
		{"/a/..%2fb", "/a/..%2fb"},
		{"/a/../b?c/../d", "/b?c/../d"},
		{"/a?/./..", "/a?/./.."},
		{"/a/..?", "/?"},

		// Bytes that may not stand in a URL are encoded (RFC 3986, 2.1).
		{"/caf\xc3\xa9", "/caf%C3%A9"},
		{"/caf\xe9", "/caf%E9"},
		{"/a|b\"<>^`{}", "/a%7Cb%22%3C%3E%5E%60%7B%7D"},
		{"/?q=\xc3\xa9|\\", "/?q=%C3%A9%7C%5C"},
		{"/a/../|", "/%7C"},

		// Paths that could be read in two ways.
		{"/a\\b", ""},
		{"/\\example.com", ""},
		{"/a/..\\b?c", ""},
		{"/%", ""},
		{"/%4", ""},
		{"/%zz", ""},
		{"/a%2", ""},
		{"/%%41", ""},
		{"/%?a=%41", ""},
		// A malformed escape in a query is sent as it came: browsers, Node and HTTrack send such queries.
		{"/?%", "/?%"},
		{"/?off=50%", "/?off=50%"},
		{"/?a=%u0041&b=%zz&c=%4", "/?a=%u0041&b=%zz&c=%4"},
		{"/a/../b?a=%|", "/b?a=%%7C"},
		{"/a#b", ""},
		{"/?a#", ""},
		{"/a b", ""},
		{"/a\tb", ""},
		{"/a\r\nHost: b", ""},
		{"/a\x00", ""},
		{"/a\x7f", ""},
		{"/?a b", ""},
	} {
		got, err := ParseTarget("http", "example.com", test.uri)
		if got.Path != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: got %q, %v, want %q", test.uri, got.Path, err, test.want)
		}
	}
}

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com":           "http://example.com/",
		"HTTPS://Example.com:443":      "https://example.com/",
		"http://example.com?a=b":       "http://example.com/?a=b",
		"http://example.com/a://b":     "http://example.com/a://b",
		"http://example.com/?u=http:/": "http://example.com/?u=http:/",
		"http://[::1]:8080/a":          "http://[::1]:8080/a",
		"http://example.com/a/../b":    "http://example.com/b",
		"http://example.com:81":        "http://example.com:81/",

		"":                            "",
		"/a":                          "",
		"example.com":                 "",
		"//example.com/":              "",
		"http:/example.com":           "",
		"http:example.com":            "",
		"http://":                     "",
		"http:///a":                   "",
		"http://?a":                   "",
		"http://#":                    "",
		"http://example.com#a":        "",
		"http://example.com/#a":       "",
		"http://example.com\\@b/":     "",
		"http://a@b/":                 "",
		"http://example.com;a":        "",
		" http://example.com":         "",
		"http://example.com ":         "",
		"ftp://example.com/":          "",
		"javascript://example.com/%0": "",
		"http://exa\nmple.com/":       "",
		"http://example.com/%":        "",
		"://example.com":              "",
	} {
		got, err := ParseURL(raw)
		if err == nil && got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", raw, got, err, want)
		}
	}
}

// TestReadURL takes the path of a typed URL as it is, if the host is valid.
func TestReadURL(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com/a":       "http://example.com/a",
		"http://example.com/%":       "http://example.com/%",
		"http://example.com/a b":     "http://example.com/a b",
		"http://example.com/a#b":     "http://example.com/a",
		"http://example.com#b":       "http://example.com/",
		"http://example.com/a\\b":    "http://example.com/a\\b",
		"http://example.com;a":       "http://example.com/;a",
		"http://example.com/a/../%z": "http://example.com/%z",

		"example.com/a":      "",
		"http://a@b/%":       "",
		"http://127.1/%":     "",
		"ftp://example.com/": "",
	} {
		got, err := ReadURL(raw)
		if err == nil && got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", raw, got, err, want)
		}
	}
}

func TestTarget(t *testing.T) {
	for _, test := range []struct{ raw, origin, hostname, address string }{
		{"http://example.com/a", "http://example.com", "example.com", "example.com:80"},
		{"https://example.com/a", "https://example.com", "example.com", "example.com:443"},
		{"https://example.com:80/", "https://example.com:80", "example.com", "example.com:80"},
		{"http://[::1]/", "http://[::1]", "::1", "[::1]:80"},
		{"http://[::1]:81/", "http://[::1]:81", "::1", "[::1]:81"},
		{"https://192.0.2.1/", "https://192.0.2.1", "192.0.2.1", "192.0.2.1:443"},
	} {
		got, err := ParseURL(test.raw)
		if err != nil || got.Origin() != test.origin || got.Hostname() != test.hostname || got.Address() != test.address {
			t.Errorf("%s: got %q, %q, %q, %v", test.raw, got.Origin(), got.Hostname(), got.Address(), err)
		}
	}
}

// TestAuthorityIsNotQuoted: an error does not repeat a query in the authority, which an HTTP/2 request can have.
func TestAuthorityIsNotQuoted(t *testing.T) {
	for _, authority := range []string{"a.test?k=SECRET", "a.test:80?k=SECRET", "a.test?k=SECRET:80", "a:b:c?k=SECRET", "[::1]?k=SECRET", "a.test#SECRET", "?k=SECRET"} {
		if _, err := ParseTarget("https", authority, "/"); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: got %v", authority, err)
		}
	}
}
