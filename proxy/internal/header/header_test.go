package header

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestStatusOfOthers: of Proxy-Status only the members of others are kept.
func TestStatusOfOthers(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string // what others have said
	}{
		{nil, ""},
		{[]string{"cdn"}, "cdn"},
		{[]string{`cdn; error=dns_error; details="a, b"`, `"other hop";received-status=502`}, `cdn;error=dns_error;details="a, b", "other hop";received-status=502`},
		{[]string{"robotsgate; error=forged"}, ""},
		{[]string{`"robotsgate"; error=forged, cdn`}, "cdn"},
		{[]string{"robotsgate, cdn, robotsgate"}, "cdn"},
		{[]string{"Robotsgate, robotsgate2"}, "Robotsgate, robotsgate2"},
		{[]string{"(robotsgate)"}, "(robotsgate)"},
		{[]string{`cdn; error="`}, ""}, // can't be read: says nothing
		{[]string{"cdn,,"}, ""},
		{[]string{"\xff"}, ""},
	} {
		h := http.Header{Status: slices.Clone(c.lines)}
		dropOwn(h)
		if got := strings.Join(h[Status], " | "); got != c.want {
			t.Errorf("%q: kept %q, want %q", c.lines, got, c.want)
		}
	}
}

// TestName: the User-Agent of a request is the crawler's, and no other field tells of another program.
func TestName(t *testing.T) {
	h := http.Header{
		"User-Agent": {"Chrome/1"}, "User_agent": {"Chrome/1"}, "Sec-Ch-Ua": {`"Chromium"`}, "Sec_ch_ua": {`"Chromium"`},
		"Sec-Ch-Ua-Full-Version-List": {`"Chromium"`}, "Sec-Ch-Ua-" + strings.Repeat("x", 100): {"y"},
		"Sec-Ch-Width": {"1"}, "Sec-Fetch-Mode": {"cors"}, "X-User-Agent": {"x"},
	}
	Name(h, "NewsBot/1.0")
	want := http.Header{"User-Agent": {"NewsBot/1.0"}, "Sec-Ch-Width": {"1"}, "Sec-Fetch-Mode": {"cors"}, "X-User-Agent": {"x"}}
	if !maps.EqualFunc(h, want, slices.Equal) {
		t.Errorf("got %v, want %v", h, want)
	}
}
