package policy

import (
	"cmp"
	"strings"
)

// maxTokenSearch bounds how much of a User-Agent header is searched for a product
// token. A client without one in it is anonymous.
const maxTokenSearch = 1024

// ProductToken returns the name that robots.txt files use for the crawler that
// sends this User-Agent header, or "" if there is none in it: then only the group for
// "*" applies (RFC 9309, 2.2.1).
//
// The token is the first product that isn't a browser's. Crawlers that
// pose as browsers have theirs in a comment: after "compatible;", or else
// as the first word with a version.
func ProductToken(userAgent string) string {
	userAgent = userAgent[:min(len(userAgent), maxTokenSearch)]
	compatible, versioned := "", ""
	for rest := userAgent; rest != ""; {
		outside, _, _ := strings.Cut(rest, "(")
		for word := range strings.FieldsSeq(outside) {
			if name := crawlerName(word); name != "" {
				return name
			}
		}
		rest = rest[len(outside):]
		n := commentLen(rest)
		c, v := namesInComment(rest[:n])
		compatible, versioned = cmp.Or(compatible, c), cmp.Or(versioned, v)
		rest = rest[n:]
	}
	return cmp.Or(compatible, versioned)
}

// commentLen returns the length of the comment that s begins with. Comments nest,
// a backslash quotes (RFC 9110, 5.6.5), and one that is not closed goes on to the end.
func commentLen(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// namesInComment returns the first name of a crawler after "compatible;", and the first
// before a slash and a digit.
func namesInComment(comment string) (compatible, versioned string) {
	afterCompatible := false
	for item := range strings.FieldsFuncSeq(comment, func(r rune) bool { return r == ';' || r == ',' || r == '(' || r == ')' }) {
		item = strings.TrimSpace(item)
		if afterCompatible && compatible == "" {
			compatible = crawlerName(item)
		}
		afterCompatible = strings.EqualFold(item, "compatible")
		for word := range strings.FieldsSeq(item) {
			n := tokenLen(word)
			if versioned == "" && n+1 < len(word) && word[n] == '/' && strings.Contains(digits, word[n+1:n+2]) {
				versioned = crawlerName(word)
			}
		}
	}
	return compatible, versioned
}

// crawlerName returns the product token that s begins with. There is none if s
// is a number, a URL or an address, or if browsers use the name.
func crawlerName(s string) string {
	n := tokenLen(s)
	name := s[:n]
	if n < len(s) && (s[n] == ':' || s[n] == '@') {
		return ""
	}
	if strings.Trim(name, digits+"-_") == "" || browserNames[strings.ToLower(name)] {
		return ""
	}
	return name
}

// tokenLen returns how many of the first bytes of s may be part of a product token: the
// characters of RFC 9309, and digits, which many crawlers use.
func tokenLen(s string) int {
	return len(s) - len(strings.TrimLeft(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"+digits))
}

const digits = "0123456789"

// browserNames are the products in the User-Agent of browsers, in lower case. They don't identify
// the crawler that uses the browser.
var browserNames = browserSet(`
	Mozilla compatible like

	AppleWebKit KHTML Gecko Goanna Presto Trident Blink WebView

	Chrome HeadlessChrome Chromium CriOS
	Firefox FxiOS Focus Klar Iceweasel IceCat SeaMonkey PaleMoon Waterfox LibreWolf Minefield Fennec
	Safari Version Mobile Epiphany
	Edg Edge EdgA EdgiOS MSIE MSIEMobile IEMobile
	Opera OPR OPT OPiOS OPX Opera-Mini Opera-Mobi
	Brave Vivaldi YaBrowser Yowser SamsungBrowser UCBrowser UBrowser UCWEB MiuiBrowser HuaweiBrowser
	QQBrowser MQQBrowser Whale Silk Silk-Accelerated Puffin DuckDuckGo Ddg Konqueror Falkon QupZilla
	Maxthon Sleipnir Iron Coast GSA NintendoBrowser PhantomJS QtWebEngine Electron

	Build Profile Configuration Release Series60 SymbianOS SymbOS Tablet TV SmartTV SMART-TV
	Windows Macintosh X11 Linux Ubuntu Fedora Debian CentOS Android iPhone iPad CrOS
`)

func browserSet(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[strings.ToLower(name)] = true
	}
	return set
}
