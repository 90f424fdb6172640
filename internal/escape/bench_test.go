package escape

import (
	"strings"
	"testing"
)

func BenchmarkAppendJSON(b *testing.B) {
	var line []byte
	for name, s := range map[string]string{"short": "allow", "digest": strings.Repeat("0123456789abcdef", 4), "foreign": "Disallow: /ü/中"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				line = AppendJSON(line[:0], s)
			}
		})
	}
}
