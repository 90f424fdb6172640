package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes.
type Size int64

// Units of a Size.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

type sizeUnit struct {
	name  string
	bytes Size
}

// units begin with the largest, so that String finds the shortest form.
var units = []sizeUnit{
	{"TiB", TiB}, {"TB", 1e12},
	{"GiB", GiB}, {"GB", 1e9},
	{"MiB", MiB}, {"MB", 1e6},
	{"KiB", KiB}, {"KB", 1e3},
	{"B", 1},
}

// String returns s as a configuration writes it, such as 512KiB.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return "0B"
}

func parseSize(text string) (Size, error) {
	number := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	unit := strings.TrimPrefix(text[len(number):], " ")
	i := slices.IndexFunc(units, func(u sizeUnit) bool { return strings.EqualFold(u.name, unit) })
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("%q is negative", text)
	case number == "":
		return 0, fmt.Errorf("expected a size such as 512KiB, got %q", text)
	case text == "0": // in every unit
		return 0, nil
	case unit == "":
		return 0, fmt.Errorf("%q has no unit: write %sB, or KiB, MiB, GiB", text, number)
	case i < 0:
		return 0, fmt.Errorf("expected a size such as 512KiB, 64MiB or 1GB, got %q", text)
	case err != nil || n > math.MaxInt64/int64(units[i].bytes):
		return 0, fmt.Errorf("%q is too large", text)
	}
	return Size(n) * units[i].bytes, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	number, inDays := strings.CutSuffix(text, "d")
	days, notDays := strconv.ParseUint(number, 10, 16)
	switch {
	case text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, fmt.Errorf("%q has no unit: write %ss, or m, h", text, text)
	case inDays && notDays == nil:
		return 0, fmt.Errorf("a day may have 23 or 25 hours and is no unit: write %dh", days*24)
	case err != nil:
		return 0, fmt.Errorf("expected a duration such as 24h, 5m or 10s, got %q", text)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", text)
	}
	return d, nil
}

// short returns d as a configuration writes it: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}
