package wire

import (
	"slices"
	"strings"
	"testing"
)

// Every spelling of a target is judged and sent as one (RFC 3986, 6.2.2), or not
// at all.
func TestWirePaths(t *testing.T) {
	sent := func(path, arrives string) wireRow {
		return wireRow{name: path, path: path, expect: expect{want: 200, arrives: "GET " + arrives}}
	}
	denied := func(path string) wireRow { return wireRow{name: path, path: path, expect: expect{want: 403}} }
	// The gate's own answer: the request could be read, so the connection goes on.
	bad := func(path string) wireRow { return wireRow{name: path, path: path, expect: expect{want: 400}} }
	// net/http's: what is on the line can't be told.
	unread := func(path string) wireRow {
		return wireRow{name: path, path: path, expect: expect{want: 400, closes: true}, inHTTP2: reset}
	}
	// HTTP/2 has no line for a space to cut.
	twoWords := func(path string) wireRow {
		return wireRow{name: path, path: path, expect: expect{want: 400, closes: true}, inHTTP2: &expect{want: 400}}
	}
	runWire(t, []wireRow{
		sent("/ok", "/ok"),
		sent("/", "/"),
		denied("/private/x"),
		sent("/private/open", "/private/open"),

		// Dot segments (RFC 3986, 5.2.4), raw and encoded.
		denied("/a/../private/x"),
		denied("/../private/x"),
		denied("/../../../private/x"),
		denied("/./private/x"),
		denied("/a/./../private/x"),
		denied("/a/b/../../private/x"),
		denied("//../private/x"),
		denied("/a/%2e%2e/private/x"),
		denied("/a/%2E%2E/private/x"),
		denied("/a/.%2e/private/x"),
		denied("/a/%2e./private/x"),
		denied("/%2e/private/x"),
		denied("/private/."),
		denied("/private/%2e"),
		denied("/private/open/../x"),
		denied("/a/..//../private/../private/x"),
		sent("/private/../ok", "/ok"),
		sent("/private/%2e%2E/ok", "/ok"),
		sent("/private/..", "/"),
		sent("/private/%2e%2e", "/"),
		sent("/a/.", "/a/"),
		sent("/a/..", "/"),
		sent("/..", "/"),
		sent("/a/./b/../c?d=/../e", "/a/c?d=/../e"),
		sent("/private/../private/open", "/private/open"),

		// What only looks like a dot segment stays, and so do double slashes.
		sent("/a/%252e%252e/ok", "/a/%252e%252e/ok"),
		denied("/a/%252e%252e/private/x"), // a server behind a decoding proxy resolves it
		sent("/a/.../private/x", "/a/.../private/x"),
		sent("/a/..x/b", "/a/..x/b"),
		sent("/a//b", "/a//b"),
		sent("/ok?../private/x", "/ok?../private/x"),

		// Dot segments next to encoded separators are refused.
		bad("/a/..%2fprivate/x"),
		bad("/a%2f..%2Fprivate/x"),
		bad("/a/%5c..%5cprivate/x"),
		bad("/.%2Fprivate/x"),
		bad("/%2e%2fprivate/x"),
		bad("/a%2F%2E%2e/b"),
		bad("/a%5c."),
		sent("/ok?..%2Fprivate/x", "/ok?..%2Fprivate/x"),
		sent("/a..%2Fb", "/a..%2Fb"),
		sent("/a%2F...%2Fb", "/a%2F...%2Fb"),

		// Other spellings are judged as servers read them, and travel as they came.
		denied("//private/x"),
		denied("/a/..//private/x"),
		denied("/%2Fprivate/x"),
		denied("/private%2Fx"),
		denied("/private%5cx"),
		denied("/%70rivate%2fx?y=%2F"),
		denied("/private;v=1/x"),
		denied("/;/private/x"),
		denied("/.;/private/x"),
		denied("/a/..;x=y/private/x"),
		denied("/a/..;%2fprivate/x"),
		denied("/a;b%2F/../private;/x"),
		sent("/private/open//x", "/private/open//x"),
		sent("/ok//x;y%2Fz", "/ok//x;y%2Fz"),

		// Unreserved characters count as themselves, and travel as they came.
		denied("/%70rivate/x"),
		denied("/%70%72%69%76%61%74%65/x"),
		denied("/a/%2e%2e/%70rivate/x"),
		sent("/%6f%6B", "/%6f%6B"),
		sent("/PRIVATE/x", "/PRIVATE/x"),
		sent("/%7euser/%7Euser/~user", "/%7euser/%7Euser/~user"),

		// Bytes that a URL must not contain are encoded if that changes no meaning.
		sent("/a\"b<c>d^e`f{g|h}i", "/a%22b%3Cc%3Ed%5Ee%60f%7Bg%7Ch%7Di"),
		sent("/b\xc3\xbccher", "/b%C3%BCcher"),
		sent("/\xff\xfe", "/%FF%FE"),
		sent("/ok?q=\xe2\x82\xac&r=\"", "/ok?q=%E2%82%AC&r=%22"),
		sent("/ok?a\\b", "/ok?a%5Cb"),
		sent("/ok?", "/ok?"),
		sent("/ok?a=[b]", "/ok?a=[b]"),
		sent("/ok;a=b,c!$&'()*+:@", "/ok;a=b,c!$&'()*+:@"),
		sent("/a%00b", "/a%00b"),
		sent("/a%0d%0aHost:%20x", "/a%0d%0aHost:%20x"),
		sent("/a%23b%3Fc", "/a%23b%3Fc"),

		bad("/a\\b"),
		bad("/\\private/x"),
		bad("/a\\..\\private\\x"),
		bad("/ok#fragment"),
		bad("/private/x#"),
		bad("/ok?q#"),
		// A malformed escape in a query travels as it came.
		sent("/ok?%", "/ok?%"),
		sent("/ok?%2", "/ok?%2"),
		sent("/ok?off=50%&x=%u011f%zz", "/ok?off=50%&x=%u011f%zz"),
		denied("/private/x?off=50%"),
		unread("/%"),
		unread("/%2"),
		unread("/%zz"),
		unread("/%u002e%u002e/private/x"),
		unread("/\x00"),
		unread("/private\x00/../x"),
		unread("/\x01"),
		unread("/\x1b"),
		unread("/\x7f"),
		unread("/ok?\x00"),
		unread("/a\tb"),
		twoWords("/a b"),
		twoWords("/ok?a b"),
	})
}

func TestWireHosts(t *testing.T) {
	rows := []wireRow{
		{name: "in upper case (RFC 9110, 4.2.3)", authority: "SHOUTED", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "in upper case, denied", authority: "SHOUTED", path: "/private/x", expect: expect{want: 403}},
		{name: "with a final dot (RFC 3986, 3.2.2)", authority: "ORIGIN.", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "with a final dot, denied", authority: "ORIGIN.", path: "/private/x", expect: expect{want: 403}},
		{name: "with the default port (RFC 9110, 4.2.3)", authority: "ORIGIN:443", noClear: "443 is not its default", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "with the default port in clear", authority: "ORIGIN:80", noTunnel: "80 is not its default", noHTTP2: "80 is not its default", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "with zeros before the port", authority: "ORIGIN:0000443", noClear: "443 is not its default", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "with an empty port", authority: "ORIGIN:", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "with dot, case and port", authority: "SHOUTED.:", path: "/private/../ok", expect: expect{want: 200, arrives: "GET /ok"}},
		{name: "with another port", authority: "ORIGIN:8080", expect: expect{want: 421}, inClear: &expect{want: 200, arrives: "GET /ok", host: "ORIGIN:8080"}},
		{name: "with another port in upper case", authority: "SHOUTED:08080", expect: expect{want: 421}, inClear: &expect{want: 200, arrives: "GET /ok", host: "ORIGIN:8080"}},
		{name: "international, as ASCII in upper case (RFC 5891, 5.4)", authority: "XN--BCHER-KVA.ORIGIN",
			expect: expect{want: 421}, inClear: &expect{want: 200, arrives: "GET /ok", host: "xn--bcher-kva.ORIGIN"}},
		{name: "international, in Unicode", raw: "GET http://B\u00dcCHER.ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "Host is ASCII", noHTTP2: ":authority is ASCII",
			expect: expect{want: 200, arrives: "GET /ok", host: "xn--bcher-kva.ORIGIN"}},
		{name: "international, denied", raw: "GET http://b\u00fccher.ORIGIN/private/x HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "Host is ASCII", noHTTP2: ":authority is ASCII",
			expect: expect{want: 403}},
		{name: "with an ideographic full stop", raw: "GET http://a\u3002ORIGIN\uff0e/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "Host is ASCII", noHTTP2: ":authority is ASCII",
			expect: expect{want: 200, arrives: "GET /ok", host: "a.ORIGIN"}},
		{name: "with full-width letters", raw: "GET http://\uff41.ORIGIN/ok HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", noTunnel: "Host is ASCII", noHTTP2: ":authority is ASCII",
			expect: expect{want: 200, arrives: "GET /ok", host: "a.ORIGIN"}},
		{name: "with an underscore", authority: "a_b.ORIGIN", expect: expect{want: 421}, inClear: &expect{want: 200, arrives: "GET /ok", host: "a_b.ORIGIN"}},
	}
	for kind, spellings := range map[string][]string{
		"user name (RFC 9110, 4.2.4)": {"user@ORIGIN", "user:pw@ORIGIN", "@ORIGIN", ":@ORIGIN", "ORIGIN@other.example", "ORIGIN:80@other.example", "a@b@ORIGIN"},
		"brackets (RFC 3986, 3.2.2)":  {"[ORIGIN]", "[127.0.0.1]", "[::1", "::1", "[::1]x", "[]", "[v1.a]", "[::ffff:7f000001]", "[::1]:80:80", "[1::2::3]"},
		"zone (RFC 6874)":             {"[fe80::1%25lo]", "[fe80::1%lo]", "[::1%25]"},
		"decimal":                     {"2130706433", "16909060", "0", "4294967296"},
		"octal":                       {"0177.0.0.1", "017700000001", "127.0.0.01", "00.0.0.0", "127.000.000.001"},
		"hexadecimal":                 {"0x7f000001", "0X7F000001", "0x7f.0.0.1", "127.0.0.0x1", "0x", "name.0x7f"},
		"short":                       {"127.1", "127.0.1", "127.65535", "1.2.3"},
		"numbers that are no address": {"1.2.3.4.5", "127.0.0.256", "999.1.1.1", "127..1", "1.2.3.4.."},
		"no name": {".", "..", ".ORIGIN", "a..ORIGIN", "a,b", "a;b", "a!b", "*", "%6fther.example", "a%00b", "-:80:80", "a'b", "(a)", strings.Repeat("a", 64) + ".example",
			strings.Repeat("a.", 127) + "example"},
		"port": {"ORIGIN:0", "ORIGIN:65536", "ORIGIN:-1", "ORIGIN:+80", "ORIGIN:http", "ORIGIN:8 0", "ORIGIN:0x50", "ORIGIN:80:80", "ORIGIN:99999999999999999999"},
	} {
		for _, s := range spellings {
			row := wireRow{name: kind + ": " + s, authority: s, expect: expect{want: 400, either: true}, inHTTP2: &expect{want: 400}}
			if strings.Contains(s, "@") {
				row.inHTTP2 = reset // RFC 9113, 8.3.1
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b wireRow) int { return strings.Compare(a.name, b.name) })
	runWire(t, rows)
}
