package admin

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/usage"
)

func stated(origin string, all ...usage.Preference) *record.Record {
	x := ended(origin+"/x", allowed)
	x.Usage = usage.Stated{Preferences: all}.Details()
	return x
}

// TestStated counts origins, not requests, by what they have stated in the last hour.
func TestStated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOverview()
		no, yes := usage.Preference{Category: "train-ai"}, usage.Preference{Category: "search", Allowed: true}
		for range 3 {
			o.Request(stated("http://a", no, yes))
		}
		time.Sleep(15 * time.Minute) // fake clock
		o.Request(stated("http://a", no, usage.Preference{Category: "search"}))
		o.Request(stated("http://b", yes, usage.Preference{Category: "bots"}, usage.Preference{Category: "*"}))
		o.Request(stated("http://b", usage.Preference{Category: "use", Level: "full"}))
		o.Request(stated("http://c"))
		want := []Stated{{"train-ai", 1, 0}, {"search", 1, 2}, {Other, 1, 0}}
		if s := o.State(); !slices.Equal(s.Stated, want) || s.Stating != 2 || s.AtLeast {
			t.Errorf("got %+v of %d, want %+v of 2", s.Stated, s.Stating, want)
		}
		time.Sleep(50 * time.Minute) // fake clock
		want = []Stated{{"train-ai", 1, 0}, {"search", 1, 1}, {Other, 1, 0}}
		if s := o.State(); !slices.Equal(s.Stated, want) || s.Stating != 2 {
			t.Errorf("after an hour: got %+v of %d, want %+v of 2", s.Stated, s.Stating, want)
		}
		time.Sleep(time.Hour) // fake clock
		if s := o.State(); len(s.Stated) != 0 || s.Stated == nil || s.Stating != 0 {
			t.Errorf("after two hours: got %+v of %d", s.Stated, s.Stating)
		}
		for i := range maxStating + 1 {
			o.Request(stated(fmt.Sprint("http://", i), no))
		}
		if s := o.State(); s.Stating != maxStating || !s.AtLeast {
			t.Errorf("of too many: got %d, %v", s.Stating, s.AtLeast)
		}
	})
}

// TestReservedRule: a preference that denies is among the rules that deny.
func TestReservedRule(t *testing.T) {
	o := NewOverview()
	x := ended("http://a.example/x", &policy.Decision{Enforced: true, Reason: policy.ByUsage,
		Reserved: usage.Preference{Category: "train-ai", Source: usage.ContentUsage, In: usage.InRobots, Line: 4}})
	o.Request(x)
	want := Rule{Origin: "http://a.example", Line: 4, Text: "train-ai=n from content-usage", Usage: true}
	if rules := o.State().Rules; len(rules) != 1 || rules[0].Of != want {
		t.Errorf("got %+v, want %+v", rules, want)
	}
}
