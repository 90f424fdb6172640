package robotstxt

import (
	"slices"
	"testing"
)

func TestMatching(t *testing.T) {
	file := Parse([]byte("User-agent: *\nDisallow: /\nAllow: /shop\nDisallow: /shop/*/cart$\nAllow: /shop/*/cart$\nDisallow: /x\nDisallow: /*?q=a:b\n"), 0)
	for _, test := range []struct {
		path string
		want []int
	}{
		{"/shop/1/cart", []int{5, 4, 3, 2}}, // on a tie Allow, then the shorter ones
		{"/shop/1/carts", []int{3, 2}},
		{"/", []int{2}},
		{"/s?q=a%3Ab", []int{7, 2}}, // by the second comparison only
		{"/s?q=a:b", []int{7, 2}},   // by both, once
	} {
		group := file.Group()
		var lines []int
		for _, r := range group.Matching(test.path) {
			lines = append(lines, r.Line)
		}
		if !slices.Equal(lines, test.want) {
			t.Errorf("%s: got lines %v, want %v", test.path, lines, test.want)
		}
		if governs, ok := group.Match(test.path); !ok || governs.Line != lines[0] {
			t.Errorf("%s: line %d governs by Match, line %d by Matching", test.path, governs.Line, lines[0])
		}
	}
	if rules := (Group{}).Matching("/"); len(rules) > 0 {
		t.Errorf("without a group: %v", rules)
	}
}
