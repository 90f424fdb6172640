package history

import (
	"slices"
	"strings"
	"testing"
)

// TestCompareTDMRep: paths are made from the locations of both versions. A version that cannot be read
// states nothing.
func TestCompareTDMRep(t *testing.T) {
	for _, c := range []struct {
		was, is string
		paths   []string
		want    []string
	}{
		{was: "", is: ""},
		{was: "", is: `[{"location": "/a/*.jpg$", "tdm-reservation": 1}]`, want: []string{"/a/.jpg: nothing, then tdm=n", "/a/x.jpg: nothing, then tdm=n"}},
		{was: `[{"location": "/", "tdm-reservation": 1}]`, is: `{"location": "/", "tdm-reservation": 1}`, want: []string{"/: tdm=n, then nothing"}},
		{was: `[{"location": "/", "tdm-reservation": 1}]`, is: `[{"location": "/b", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}, 5, {"location": 5}]`,
			paths: []string{"/b/c", "/d"}, want: []string{"/b: tdm=n, then tdm=y", "/b/c: tdm=n, then tdm=y"}},
		{was: `[{"location": "/", "tdm-reservation": 1}]`,
			is:   `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.example/p"}]`,
			want: []string{"/: tdm=n, then tdm=n, licence https://a.example/p"}},
		{was: `[{"location": "/", "tdm-reservation": 1}]`, is: `[{"location": "/", "tdm-reservation": "1"}]`},
	} {
		var got []string
		for _, r := range CompareTDMRep(c.was, c.is, c.paths) {
			got = append(got, r.Path+": "+StatedWords(r.Was)+", then "+StatedWords(r.Is))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s and %s: got %q, want %q", c.was, c.is, got, c.want)
		}
	}
}

// TestCompareTDMRepEnds: files of many entries take a bounded time.
func TestCompareTDMRepEnds(t *testing.T) {
	entry := `{"location": "/*a*b*c", "tdm-reservation": 1},`
	big := "[" + strings.Repeat(entry, 9_999) + strings.TrimSuffix(entry, ",") + "]"
	if got := CompareTDMRep(big, strings.ReplaceAll(big, "/*a", "/*d"), nil); len(got) == 0 {
		t.Error("got no difference")
	}
}
