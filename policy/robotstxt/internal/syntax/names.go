package syntax

import "strings"

// TokenNames returns the names that the value of a User-agent line gives: the longest
// prefix that is valid in a product token, and the shorter one without digits that
// Google's parser reads, if it differs. Sites write for both.
func TokenNames(value string) (long, short string) {
	long = value[:len(value)-len(strings.TrimLeft(value, tokenBytes))]
	if i := strings.IndexAny(long, digits); i >= 0 {
		short = long[:i]
	}
	return long, short
}

// tokenBytes may be part of a product token.
const (
	digits     = "0123456789"
	tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-" + digits
)

// IsEveryone reports whether the value of a User-agent line means all crawlers.
func IsEveryone(value string) bool {
	return strings.HasPrefix(value, "*") && (len(value) == 1 || IsSpace(value[1]))
}
