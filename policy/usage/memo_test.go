package usage_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// before returns an Input for a request that has not been sent.
func before(robots, path string, denied bool) *usage.Input {
	f := robotstxt.Parse([]byte(robots), 0)
	return &usage.Input{Robots: f, Group: f.Group("ExampleBot"), Path: path, Denied: denied, Effort: new(robotstxt.NewEffort())}
}

// TestMemo: a Memo that has seen robots.txt with few differences returns what Read returns.
func TestMemo(t *testing.T) {
	groups := []string{"User-agent: *\n", "\nUser-agent: *\n", "User-agent: ExampleBot\n", "User-agent: Other\n"}
	lines := []string{
		"", "Content-Usage: train-ai=n\n", "Content-Usage: train-ai=y\n", "Content-Usage: /a train-ai=y\n", "Content-Usage: /a/b train-ai=n, search=y\n",
		"Content-Signal: train-ai=n\n", "Content-Signal: /a ai-train=no\n", "License: https://a.example/1\n", "License: https://a.example/2\n", "Content-Usage: /a*b search=n\n",
	}
	var memo usage.Memo
	kept := 0
	random := gatetest.Random(t)
	any := func(of []string) string { return of[random.IntN(len(of))] }
	for range gatetest.Size(20_000, 100_000) {
		robots := any(lines) + any(groups) + any(lines) + any(lines) + any(lines)
		in := before(robots, any([]string{"/", "/a", "/a/b", "/axb"}), random.IntN(4) == 0)
		want := usage.Read(in)
		if got := memo.Read(in); !same(got, want) {
			t.Fatalf("%q, %s, denied %v: got %+v, want %+v", robots, in.Path, in.Denied, got, want)
		}
		again, more := memo.Read(in), memo.Read(in)
		if len(again.Preferences) > 0 && &again.Preferences[0] == &more.Preferences[0] {
			kept++
		}
	}
	if kept == 0 {
		t.Error("the Memo has kept nothing")
	}
}

// TestMemoNotKept: what a response, tdmrep.json or too much work makes of a result is not kept.
func TestMemoNotKept(t *testing.T) {
	const robots = "User-agent: *\nContent-Usage: train-ai=n\n"
	tdmrep, err := usage.ParseTDMRep([]byte(`[{"location": "/", "tdm-reservation": 1}]`))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(in *usage.Input){
		"header":    func(in *usage.Input) { in.Header = map[string][]string{"Content-Usage": {"search=n"}} },
		"tdmrep":    func(in *usage.Input) { in.TDMRep = tdmrep },
		"no effort": func(in *usage.Input) { in.Effort = nil },
		"exhausted": func(in *usage.Input) {
			busy := before("User-agent: *\n"+strings.Repeat("Content-Usage: /*abcdefgh search=n\n", 200), "/"+strings.Repeat("abcdefg", 300), false)
			busy.Effort = in.Effort
			for i := 0; !in.Effort.Exhausted(); i++ {
				if usage.Read(busy); i > 1000 {
					t.Fatal("the effort is not exhausted")
				}
			}
		},
		"many": func(in *usage.Input) {
			labels := strings.Split("abcdefghijklmnop", "")
			*in = *before("User-agent: *\nContent-Usage: train-ai=n, "+strings.Join(labels, "=n, ")+"=n\n", "/", false)
		},
		"long": func(in *usage.Input) {
			*in = *before("User-agent: *\nContent-Usage: train-ai=n, "+strings.Repeat("x", 600)+"\n", "/", false)
		},
	} {
		var memo usage.Memo
		in := before(robots, "/", false)
		memo.Read(in)
		change(in)
		want := usage.Read(in)
		first, second := memo.Read(in), memo.Read(in)
		if !same(first, want) || !same(second, want) || &first.Preferences[0] == &second.Preferences[0] {
			t.Errorf("%s: got %+v and %+v, want %+v twice", name, first, second, want)
		}
	}
}

// TestMemoBound: an origin that states something else each time does not fill the memory.
func TestMemoBound(t *testing.T) {
	var memo usage.Memo
	for i := range 3000 {
		memo.Read(before(fmt.Sprintf("User-agent: *\nContent-Usage: l%d=n\n", i), "/", false))
	}
	if n := reflect.ValueOf(&memo).Elem().FieldByName("results").Len(); n == 0 || n > 500 {
		t.Errorf("%d results are kept, want 1 to 500", n)
	}
}

func TestDerive(t *testing.T) {
	var memo usage.Memo
	in := before("User-agent: *\nContent-Usage: train-ai=n\n", "/", false)
	calls := 0
	derive := func(s usage.Stated) string { calls++; return s.Preferences[0].Category }
	memo.Read(in)
	for range 3 {
		if got := usage.Derive(memo.Read(in), "key", derive); got != "train-ai" {
			t.Errorf("got %q", got)
		}
	}
	if calls != 1 {
		t.Errorf("derived %d times, want once", calls)
	}
	for range 2 {
		usage.Derive(usage.Read(in), "key", derive)
	}
	if calls != 3 {
		t.Errorf("derived %d times, want twice more without a Memo", calls)
	}
}

func TestMemoConcurrent(t *testing.T) {
	var memo usage.Memo
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 500 {
				category := fmt.Sprintf("l%d", (i+j)%20)
				s := memo.Read(before("User-agent: *\nContent-Usage: "+category+"=n\n", "/", false))
				if got := usage.Derive(s, 1, func(s usage.Stated) string { return s.Preferences[0].Category }); got != category {
					t.Errorf("got %q, want %q", got, category)
				}
			}
		})
	}
	all.Wait()
}
