package field

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

type sizeUnit struct {
	name  string
	bytes int64
}

// units begin with the largest, so that Size finds the shortest form.
var units = []sizeUnit{
	{"TiB", 1 << 40}, {"TB", 1e12},
	{"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6},
	{"KiB", 1 << 10}, {"KB", 1e3},
	{"B", 1},
}

// Size returns a number of bytes as a configuration writes it, such as 512KiB.
func Size[T int | int64](n T) string {
	bytes := int64(n)
	for _, u := range units {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// ParseSize reads what Size writes.
func ParseSize(text string) (int64, error) {
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
	case err != nil || n > math.MaxInt64/units[i].bytes:
		return 0, fmt.Errorf("%q is too large", text)
	}
	return n * units[i].bytes, nil
}
