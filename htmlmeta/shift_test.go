package htmlmeta

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestShiftBeforeDeclaration checks a page with an escape in its title that declares
// ISO-2022-JP only after that. It must be read as ISO-2022-JP however it arrives: in
// ASCII some bytes of its characters are quotes, which would hide a meta.
func TestShiftBeforeDeclaration(t *testing.T) {
	const shifted = "\x1b$B%\"%$='\x1b(B" // アイ洲
	const page = "<title>" + shifted + "</title><meta charset=iso-2022-jp>" +
		`<meta name="description" content="` + shifted + `"><meta name="robots" content="noindex"></head>`
	for how, r := range map[string]io.Reader{
		"whole":     strings.NewReader(page),
		"by byte":   iotest.OneByteReader(strings.NewReader(page)),
		"by halves": iotest.HalfReader(strings.NewReader(page)),
		"long":      iotest.OneByteReader(strings.NewReader(page + strings.Repeat(" ", prescanned))),
	} {
		res, err := Scan(r, Options{ContentType: "text/html"})
		if err != nil || !res.Complete || !slices.Equal(res.Metas, []Meta{{"description", "アイ洲"}, {"robots", "noindex"}}) {
			t.Errorf("%s: got %+v, %v", how, res, err)
		}
	}
}
