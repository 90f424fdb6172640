package syntax

import "strings"

// TokenName returns the name that the value of a User-agent line gives: the longest
// prefix that is valid in a product token.
func TokenName(value string) string {
	return value[:len(value)-len(strings.TrimLeft(value, tokenBytes))]
}

// ShortName returns the part of a name that Google's parser reads: up to a digit. Sites write for it.
func ShortName(name string) string {
	if i := strings.IndexAny(name, digits); i >= 0 {
		return name[:i]
	}
	return name
}

// tokenBytes may be part of a product token.
const (
	digits     = "0123456789"
	tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-" + digits
)

// IsEveryone reports whether the value of a User-agent line means all crawlers.
func IsEveryone(value string) bool {
	return strings.HasPrefix(value, "*") && (len(value) == 1 || strings.IndexByte(space, value[1]) >= 0)
}
