package syntax

import (
	"math"
	"strconv"
	"strings"
)

// ParseDelay reads the value of a Crawl-delay field: digits with at most one decimal
// point.
func ParseDelay(value string) (seconds float64, ok bool) {
	if strings.Trim(value, digits+".") != "" {
		return 0, false // no sign, no exponent, no Inf
	}
	seconds, err := strconv.ParseFloat(value, 64)
	return seconds, err == nil && !math.IsInf(seconds, 0)
}
