package field

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// units begin with the largest, so that Size finds the shortest form.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1}}

// Size returns a number of bytes as a configuration writes it, such as 512KiB.
func Size(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// ParseSize reads what Size writes.
func ParseSize(text string) (n int64, ok bool) {
	for _, u := range units {
		number, found := strings.CutSuffix(strings.ToLower(text), strings.ToLower(u.name))
		n, err := strconv.ParseUint(strings.TrimSuffix(number, " "), 10, 63)
		if found && err == nil {
			return int64(n) * u.bytes, n <= uint64(math.MaxInt64/u.bytes)
		}
	}
	return 0, text == "0" // in every unit
}

var zeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// Duration returns d as a configuration writes it: 24h, not 24h0m0s.
func Duration(d time.Duration) string { return zeros.Replace(d.String()) }
