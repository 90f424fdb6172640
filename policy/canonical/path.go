package canonical

import "strings"

// PathOf returns the path and query of a URL, or of a text that resembles one:
// "example.com/x", "//example.com/x", "/x", "http://example.com?x" and
// "http://example.com;x" are understood. The fragment is dropped, dot segments are
// removed; nothing else is rewritten. The result begins with a slash.
func PathOf(rawURL string) string {
	// A space at the end is part of the URL; the end of a line is not.
	url := strings.TrimRight(strings.TrimLeft(rawURL, " \t\r\n\v\f"), "\t\r\n\v\f")
	url, _, _ = strings.Cut(url, "#")
	url = afterUserinfo(url)
	i := strings.IndexAny(url, "/?;")
	if i < 0 {
		return "/"
	}
	target := url[i:]
	if target[0] != '/' {
		target = "/" + target
	}
	return withoutDots(target)
}

// withoutDots removes the dot segments from the path of a path with its query.
func withoutDots(target string) string {
	path, _, _ := strings.Cut(target, "?")
	clean := RemoveDotSegments(path)
	if len(clean) == len(path) {
		return target
	}
	return clean + target[len(path):]
}

// afterUserinfo returns the part of a URL after "scheme://" or "//" and after the user
// name and password. In "example.com/?u=http://a" the colon comes too late to end a
// scheme.
func afterUserinfo(url string) string {
	scheme, rest, ok := strings.Cut(url, "//")
	if !ok || scheme != "" && (!strings.HasSuffix(scheme, ":") || strings.ContainsAny(scheme, "/?;")) {
		return url
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
	}
	return rest[strings.LastIndexByte(authority, '@')+1:]
}

// RemoveDotSegments resolves "." and ".." in a path without query (RFC 3986,
// section 5.2.4). Like servers, it reads %2e as a dot there. Empty segments
// stay. The result begins with a slash.
func RemoveDotSegments(path string) string {
	if strings.HasPrefix(path, "/") && !HasDotSegment(path) {
		return path
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	kept := segments[:0]
	for i, segment := range segments {
		n := dots(segment)
		if n == 0 {
			kept = append(kept, segment)
			continue
		}
		if n == 2 && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if i == len(segments)-1 {
			kept = append(kept, "") // for the slash before the dots
		}
	}
	return "/" + strings.Join(kept, "/")
}

// HasDotSegment reports whether any segment of path is "." or "..", or %2e for a dot.
func HasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if dots(segment) > 0 {
			return true
		}
	}
	return false
}

// dots returns 1 if segment is ".", 2 if it is "..", encoded or not, else 0.
func dots(segment string) int {
	if segment == "" || segment[0] != '.' && segment[0] != '%' || len(segment) > len("%2e%2e") {
		return 0
	}
	switch strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".") {
	case ".":
		return 1
	case "..":
		return 2
	}
	return 0
}
