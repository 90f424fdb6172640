package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

var mergeStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// mergeSlots are the slots of the crawlers in these tests.
var mergeSlots = []string{"/a", "news/b", "/" + NoSlot}

// mergeAnswer returns an answer of the kind that b says, which was fetched at minute i.
func mergeAnswer(b byte, i int) (slot string, s *Snapshot) {
	slot = mergeSlots[int(b>>4)%len(mergeSlots)]
	s = &Snapshot{Fetched: mergeStart.Add(time.Duration(i) * time.Minute)}
	switch b % 7 {
	case 0:
		s.Status, s.SHA256 = 200, fmt.Sprint(i)
	case 1:
		s.Status = 404
	case 2:
		s.Error = "timeout"
	case 3:
		s.Status = 403
	case 4:
		s.Status, s.Varies, s.SHA256 = 200, true, fmt.Sprint(i)
	case 5:
		s.Status, s.Varies = 404, true
	case 6:
		s.Status = 503
	}
	if isNoSlot(slot) && !s.shared() {
		s.SHA256, s.NoSlot = "", true
	}
	return slot, s
}

// tell adds an answer to a set, as an Engine with Shared does.
func (r Set) tell(slot string, s *Snapshot) Set {
	next := r.add(slot, s)
	next.note(slot, s)
	return next
}

func (r Set) text() string {
	r.Superseded = nil // it grows with what is known, and decides nothing by itself
	if r.Last == nil {
		r.Last = r.Good
	}
	data, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// FuzzMerge gives some answers to two gates, some to one and some to the other. Merged in either order, the sets must
// say what one gate would know that had got them all.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{0x00, 0x93, 0x00}, uint8(1))
	f.Add([]byte{0x03, 0x80, 0x14, 0x9a, 0x25, 0xa2}, uint8(3))
	f.Add([]byte{0x83, 0x00, 0x10}, uint8(0)) // the crawler of a 403 has brought an answer for all, elsewhere
	f.Add([]byte{0x80, 0x04, 0x02}, uint8(2))
	f.Fuzz(func(t *testing.T, input []byte, meet uint8) {
		if len(input) > 40 {
			input = input[:40]
		}
		var one, left, right Set
		for i, b := range input {
			slot, s := mergeAnswer(b, i)
			one = one.tell(slot, s)
			if b&0x80 == 0 {
				left = left.tell(slot, s)
			} else {
				right = right.tell(slot, s)
			}
			if i == int(meet) { // they meet on the way, too
				left, _ = Merge(left, right)
			}
		}
		for name, pair := range map[string][2]Set{"left, right": {left, right}, "right, left": {right, left}} {
			got, learned := Merge(pair[0], pair[1])
			if got.text() != one.text() {
				t.Errorf("%s:\ngot  %s\nwant %s", name, got.text(), one.text())
			}
			if changed := got.text() != pair[0].text(); changed && !learned {
				t.Errorf("%s: nothing was learned, but the record has changed: got %s, was %s", name, got.text(), pair[0].text())
			}
			again, learned := Merge(got, pair[1])
			if again.text() != got.text() || learned {
				t.Errorf("%s: merged again: got %s, learned %v, want %s", name, again.text(), learned, got.text())
			}
		}
	})
}

// TestMergeBound: the memory of superseded answers is bounded.
func TestMergeBound(t *testing.T) {
	var a, b Set
	for i := range 1000 {
		s := &Snapshot{Status: 200, Fetched: mergeStart.Add(time.Duration(i) * time.Second)}
		a = a.tell(fmt.Sprint("a", i), s)
		b = b.tell(fmt.Sprint("b", i), s)
	}
	merged, _ := Merge(a, b)
	if n := len(merged.Superseded.Brought); n != maxSuperseded {
		t.Errorf("%d slots are remembered, want %d", n, maxSuperseded)
	}
	long := Set{}.tell(strings.Repeat("t", 1000), &Snapshot{Status: 200, Fetched: mergeStart})
	for slot := range long.Superseded.Brought {
		if len(slot) > 32 {
			t.Errorf("a slot of %d bytes is remembered", len(slot))
		}
	}
}

// TestMergeRefreshed: a refresh is learned, also without an answer.
func TestMergeRefreshed(t *testing.T) {
	s := &Snapshot{Status: 200, Fetched: mergeStart}
	known := Set{Good: s, Last: s}
	refreshed := Set{Refreshed: mergeStart.Add(time.Minute)}
	for _, test := range []struct {
		a, b    Set
		learned bool
	}{{known, refreshed, true}, {refreshed, known, true}, {known, Set{}, false}, {known, known, false}} {
		got, learned := Merge(test.a, test.b)
		if learned != test.learned || got.Good != s || !got.Refreshed.Equal(later(test.a.Refreshed, test.b.Refreshed)) {
			t.Errorf("%s and %s: got %s, %v", test.a.text(), test.b.text(), got.text(), learned)
		}
	}
}

// TestMergeUntold: an answer to one crawler that allows everything does not come back if a newer one may have
// superseded it, as a gate alone does not note; nor if that was forgotten. One that denies does.
func TestMergeUntold(t *testing.T) {
	old := func(status int) Set {
		return Set{}.tell("/a", &Snapshot{Status: status, Fetched: mergeStart})
	}
	shared := &Snapshot{Status: 200, Fetched: mergeStart.Add(time.Hour)}
	alone := Set{Good: shared, Last: shared}
	told := Set{}.tell("b", shared)
	var forgetful Set
	for i := range 2 * maxSuperseded {
		forgetful = forgetful.tell(fmt.Sprint("c", i), &Snapshot{Status: 200, Fetched: mergeStart.Add(time.Duration(i+1) * time.Minute)})
	}
	for name, test := range map[string]struct {
		other  Set
		status int
		kept   bool
	}{
		"403, alone": {alone, 403, false}, "403, told": {told, 403, true}, "403, forgotten": {forgetful, 403, false}, "503, alone": {alone, 503, true},
	} {
		for _, pair := range [][2]Set{{old(test.status), test.other}, {test.other, old(test.status)}} {
			if merged, _ := Merge(pair[0], pair[1]); (merged.Bound["/a"] != nil) != test.kept {
				t.Errorf("%s: got %s", name, merged.text())
			}
		}
	}
}
