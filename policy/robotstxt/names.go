package robotstxt

import (
	"math"
	"strconv"
	"strings"
)

// tokenName returns the name that the value of a User-agent line gives: the longest
// prefix that is valid in a product token.
func tokenName(value string) string {
	return value[:len(value)-len(strings.TrimLeft(value, tokenBytes))]
}

// shortName returns the part of a name that Google's parser reads: up to a digit. Sites write for it.
func shortName(name string) string {
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

// isEveryone reports whether the value of a User-agent line means all crawlers.
func isEveryone(value string) bool {
	return strings.HasPrefix(value, "*") && (len(value) == 1 || strings.IndexByte(space, value[1]) >= 0)
}

// parseDelay reads the value of a Crawl-delay field: digits with at most one decimal
// point.
func parseDelay(value string) (seconds float64, ok bool) {
	if strings.Trim(value, digits+".") != "" {
		return 0, false // no sign, no exponent, no Inf
	}
	seconds, err := strconv.ParseFloat(value, 64)
	return seconds, err == nil && !math.IsInf(seconds, 0)
}
