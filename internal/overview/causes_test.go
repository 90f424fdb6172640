package overview

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
)

// TestCauses: requests without a decision are counted by cause, those with one are not.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New()
		for n, kind := range []proxy.Refusal{"", proxy.ByGuard, proxy.IsMalformed, "new kind"} {
			for range n + 1 {
				x := ended("", nil)
				x.Refused = kind
				o.Request(x)
			}
		}
		x := ended("http://a.example/", denied(1, "/", true))
		x.Refused = proxy.ByLimit
		o.Request(x)
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "[{failed 5} {malformed 3} {guard 2}]"},
			{time.Hour, "[]"},
		} {
			time.Sleep(step.after)
			if got := fmt.Sprint(o.State().Causes); got != step.want {
				t.Errorf("after %v: got %s, want %s", step.after, got, step.want)
			}
		}
	})
}
