package robotstxt

import (
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// RFC 9309, section 2.2.2, compares octets, so /private%2Fx, //private/x and
// /private;v=1/x differ from /private/x. Common servers read them as that path all the
// same:
//
//   - nginx, Jetty, Apache httpd (AllowEncodedSlashes On) and Tomcat
//     (encodedSolidusHandling="decode") decode %2F; all decode other reserved
//     characters, as %2B for +
//   - all merge slashes, except with nginx's merge_slashes off and Apache's MergeSlashes OFF
//   - IIS and Tomcat (encodedReverseSolidusHandling="decode") take a backslash, %5C too,
//     for a slash; to the others it is a character like any other
//   - Tomcat and Jetty drop path parameters, which begin with a semicolon, and decode
//     after that
//   - nginx (proxy_pass with a path) and Apache httpd (ProxyPass) send the decoded path to
//     the next server, which then reads a decoded ; and %2F as its own
//   - nginx (proxy_pass with $uri or $1) and Apache httpd (ProxyPass with nocanon) may
//     even send the decoded %25, so that the next server decodes a second time
//   - the same, and Apache httpd's RewriteRule with [P,UnsafeAllow3F], send a decoded %3F, so
//     that what follows is the query to the next server: alone, or before the request's own
//   - Jetty reads bytes that are not UTF-8 as ISO 8859-1
//   - programs take //name/private for the path /private of a host (RFC 3986, 4.2) if
//     they parse it with PHP's parse_url or JavaScript's new URL(path, base), which takes
//     ///name/private so too
//
// A gate that compares octets only can be circumvented with these spellings, so they are
// judged again as such servers read them. Rules are never rewritten: /*;jsessionid must
// not become /*. The tests in internal/e2e compare with the servers themselves.

// A Reading is a path, with its query, as some servers read it.
type Reading struct {
	Path string

	// EqualDelims says that in queries ! ' ( ) , ; and : are equal to their escapes, in rules too: frameworks
	// decode them. In the normal form * and $ are that in any case.
	EqualDelims bool
	OnlyQuery   bool // the path is the literal one, without its query
}

// normal returns the normal form of the path.
func (r Reading) normal() string {
	path := Normalize(r.Path)
	if r.EqualDelims {
		path = match.DecodeDelims(path)
	}
	return path
}

// maxReadings bounds the readings of a path: ten texts of it, with their slashes merged before or
// after dot segments are removed, or as they are, and the same in ISO 8859-1. Three such texts end at an
// encoded question mark, and what follows it makes three queries. All of these, and the path itself, may be read
// with EqualDelims too, and backslashes as slashes and as they are.
const maxReadings = 2*2*3*2*(10+3*3) + 1

// Readings returns the other ways in which common servers read path: none for nearly all paths, at most
// maxReadings. The paths in them have no dot segments.
func Readings(path string) (readings []Reading) {
	if match.HasDelims(path) {
		shown := match.DecodeDelims(path)
		if shown == path {
			shown = match.EncodeDelims(path) // as the rule may write it
		}
		readings = append(readings, Reading{shown, true, true})
	}
	for _, r := range otherPaths(path) {
		readings = append(readings, Reading{Path: r})
		if match.HasDelims(r) {
			readings = append(readings, Reading{Path: match.DecodeDelims(r), EqualDelims: true})
		}
	}
	return readings
}

// otherPaths returns the other paths that servers read path as.
func otherPaths(path string) []string {
	if !hasReadings(path) {
		return nil
	}
	bare, _, _ := strings.Cut(path, "?")
	query := path[len(bare):]

	readings := readAs(slash, bare, query)
	if strings.Contains(decodePath(forward(decodePath(bare, itself)), itself), itself) {
		for _, r := range readAs(itself, bare, query) {
			if !slices.Contains(readings, r) {
				readings = append(readings, r)
			}
		}
	}
	return readings
}

// What servers take a backslash for, in the normal form.
const (
	slash  = "/"
	itself = "%5C"
)

// readAs returns the other paths that servers read bare as that take a backslash for b, with the query.
func readAs(b, bare, query string) []string {
	decoded := decodePath(bare, b)
	forwarded := forward(decoded)
	texts := []string{decoded, decodePath(forwarded, b), bare}
	beforeMark, afterMark, _ := strings.Cut(decoded, "%3F")
	marked := []string{decodePath(forwarded, b), beforeMark} // Apache httpd encodes # and controls before the mark again
	if strings.Contains(decoded, ";") || strings.Contains(forwarded, ";") {
		dropped, droppedLater := dropParameters(bare), decodePath(dropParameters(forwarded), b)
		texts = append(texts, dropped, decodePath(dropped, b), dropParameters(decoded), droppedLater)
		marked = append(marked, droppedLater)
	}
	for _, text := range [3]string{bare, decoded, texts[1]} { // as sent, and as a proxy in front may send it on
		if path, ok := afterAuthority(text); ok {
			texts = append(texts, decodePath(path, b))
		}
	}
	readings := withoutDots(texts, bare)
	for i := range readings {
		readings[i] += query
	}
	if afterMark != "" {
		for _, r := range withoutDots(marked, bare) {
			for _, q := range forwardedQueries(query, afterMark) {
				readings = append(readings, r+q)
			}
		}
	}
	return readings
}

// afterAuthority returns the path of a text that programs take for the rest of a URL after its scheme. For
// RFC 3986, 4.2, the authority follows two slashes; JavaScript's new URL(path, base) skips more of them too.
func afterAuthority(text string) (path string, ok bool) {
	authority := strings.TrimLeft(text, "/")
	i := strings.IndexByte(authority, '/')
	if i < 0 || len(text)-len(authority) < 2 {
		return "", false
	}
	return authority[i:], true
}

// withoutDots returns texts without dot segments, with their slashes merged and as they are, and in ISO
// 8859-1; all of these that differ from bare, each once.
func withoutDots(texts []string, bare string) (readings []string) {
	add := func(text string) {
		text = RemoveDotSegments(text)
		for _, r := range [2]string{text, fromLatin1(text)} {
			if r != bare && !slices.Contains(readings, r) {
				readings = append(readings, r)
			}
		}
	}
	for _, text := range texts {
		add(mergeSlashes(text))
	}
	for _, text := range texts {
		add(text)
		// Jetty removes dot segments before it merges slashes: /a//../b is /a/b to it.
		add(mergeSlashes(RemoveDotSegments(text)))
	}
	return readings
}

// forwardedQueries returns the queries that the next server may receive if the decoded path has a question
// mark: what follows the mark, alone as with proxy_pass http://backend$uri, or before the request's own query as
// with $uri$is_args$args, or a RewriteRule with [P,QSA]. That it is lost is a reading without it.
func forwardedQueries(query, afterMark string) []string {
	after := "?" + forward(strings.ReplaceAll(afterMark, "%3F", "?"))
	if len(query) <= 1 {
		return []string{after}
	}
	return []string{after, after + query, after + "&" + query[1:]}
}

// hasReadings reports whether a path has other readings but for its query.
func hasReadings(path string) bool { return spellingsIn(path) != spellings{} }

// decodePath decodes the escapes that servers do in a path, and puts
// this in the place of backslashes. It leaves the escapes that the normal form has too, and %25, %3F and %23,
// which mean the characters themselves.
func decodePath(path, backslash string) string {
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c := path[i]
		if e, ok := match.Unescape(path[i:]); c == '%' && ok {
			i += 2
			if c = e; staysEncoded(c) {
				b = match.AppendEscaped(b, c)
				continue
			}
		}
		if c == '\\' {
			b = append(b, backslash...)
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

// staysEncoded reports characters whose escapes decodePath leaves.
func staysEncoded(c byte) bool {
	return c != '\\' && (match.Encodes(c) || c == '%') || c == '?' || c == '#'
}

// forward returns the path that the next server receives if a decoded path is sent as it
// is: %25 becomes a percent sign where that makes another escape; question mark, number sign
// and controls end the path, spaces at the end are lost.
func forward(path string) string {
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c, ok := match.Unescape(path[i:])
		if path[i] != '%' || !ok {
			b = append(b, path[i])
			continue
		}
		if c < ' ' || c == 0x7f || c == '?' || c == '#' {
			break
		}
		rest := path[i+3:]
		i += 2
		switch {
		case c == '%' && beginsEscape(rest):
			b = append(b, '%')
		case c == '%' && strings.HasPrefix(rest, "u00") && beginsEscape(rest[3:]):
			b = append(b, '%') // Jetty decodes %u0070, too
			i += 3
		default:
			b = match.AppendEscaped(b, c)
		}
	}
	text := string(b)
	for strings.HasSuffix(text, "%20") {
		text = text[:len(text)-3]
	}
	return text
}

// beginsEscape reports whether a percent sign before s would make an escape.
func beginsEscape(s string) bool { return len(s) >= 2 && match.IsHex(s[0]) && match.IsHex(s[1]) }

// dropParameters drops what follows a semicolon in every segment (RFC 3986, section 3.3).
func dropParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

// mergeSlashes makes one slash of each run of them.
func mergeSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// fromLatin1 returns path with the encoded bytes outside ASCII as characters of ISO
// 8859-1, if they are not all UTF-8.
func fromLatin1(path string) string {
	if spellingsIn(path)[notUTF8] == 0 {
		return path
	}
	b := make([]byte, 0, 2*len(path))
	for i := 0; i < len(path); i++ {
		if c, ok := match.Unescape(path[i:]); path[i] == '%' && ok && c >= 0x80 {
			b = append(b, string(rune(c))...)
			i += 2
			continue
		}
		b = append(b, path[i])
	}
	return string(b)
}
