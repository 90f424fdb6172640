package pace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzPace sends requests of three crawlers to one origin, lets clients leave, changes the settings
// and answers 429, as the input says. No two starts may be closer than the interval of the second, no
// crawler may wait for more than one turn of another one, and each request ends once.
func FuzzPace(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 2, 2, 0x30, 0, 1, 2})
	f.Add([]byte{0x80, 0x81, 0x82, 0x40, 0, 0x41, 1, 0x42, 2, 0x90, 0x91, 0x92})
	f.Add([]byte{0, 0, 0, 0, 0xc0, 0xc1, 0x33, 0, 1, 0xd0, 2, 2})
	f.Add([]byte{6, 6, 6, 4, 4, 0x45, 5}) // the sixth's client leaves at the moment of its turn
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 200 {
			input = input[:200]
		}
		synctest.Test(t, func(t *testing.T) { runFuzz(t, input) })
	})
}

type fuzzRequest struct {
	Request
	answer           int
	arrived, started time.Time
	ends             int
	err              error
}

func runFuzz(t *testing.T, input []byte) {
	settings := Config{CrawlDelay: Obey, MaxDelay: 10 * time.Second, MaxWait: 30 * time.Second, MaxQueue: 20, BackOff: 20 * time.Second}
	p := New(settings, nil)
	var mu sync.Mutex
	var starts, all []*fuzzRequest
	var wg sync.WaitGroup
	intervals := []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, 7 * time.Second}
	for i, b := range input {
		crawler, interval := fmt.Sprint(b&3%3), intervals[b>>2&3]
		switch b >> 6 {
		case 3: // the settings change
			settings.MaxWait = time.Duration(b&15) * 4 * time.Second
			settings.MaxQueue = int(b>>2&15) + 1
			p.Use(settings)
			continue
		case 2: // time passes
			time.Sleep(time.Duration(b&63) * 100 * time.Millisecond) // fake clock
		}
		r := &fuzzRequest{Request: Request{Origin: "o", Crawler: crawler, Token: crawler, CrawlDelay: interval, LongestDelay: 7 * time.Second}, arrived: time.Now(), answer: []int{200, 200, 429, 0}[b>>4&3]}
		all = append(all, r)
		ctx, cancel := context.WithCancel(t.Context())
		if b>>6 == 1 { // the client leaves
			time.AfterFunc(time.Duration(i)*300*time.Millisecond, cancel)
		}
		wg.Go(func() {
			defer cancel()
			turn, err := p.Wait(ctx, r.Request)
			mu.Lock()
			r.ends++
			if r.err = err; err == nil {
				r.started = time.Now()
				starts = append(starts, r)
			}
			mu.Unlock()
			if err == nil {
				time.Sleep(time.Duration(b&7) * 10 * time.Millisecond) // fake clock
				turn.Done(Response{Status: r.answer})
			}
		})
		synctest.Wait()
	}
	wg.Wait()
	for i, r := range all {
		late, isLate := errors.AsType[*TooLate](r.err)
		if r.ends != 1 || r.err != nil && !isLate && !errors.Is(r.err, context.Canceled) || isLate && late.After < 0 {
			t.Errorf("request %d ended %d times, with %v", i, r.ends, r.err)
		}
	}
	slices.SortStableFunc(starts, func(a, b *fuzzRequest) int { return a.started.Compare(b.started) })
	checkIntervals(t, starts, 0)
	if !slices.ContainsFunc(all, func(r *fuzzRequest) bool { return r.answer == 429 }) { // a paused crawler has no turn
		checkTurns(t, starts)
	}
	if queues, waiting := p.Queues(), p.Waiting(); waiting != 0 || len(queues) != 0 {
		t.Errorf("%d requests wait at the end, in %v", waiting, queues)
	}
	p.Close()
	time.Sleep(time.Hour) // fake clock: all is forgotten
	synctest.Wait()
}

// checkIntervals looks at all starts of one moment together, since their order is not known: only one
// of them may have an interval, and that to the moment before, less some slack.
func checkIntervals(t *testing.T, starts []*fuzzRequest, slack time.Duration) {
	t.Helper()
	var before time.Time
	paced := 0
	for i, r := range starts {
		if i > 0 && !r.started.Equal(starts[i-1].started) {
			before, paced = starts[i-1].started, 0
		}
		if r.CrawlDelay == 0 {
			continue
		}
		if paced++; paced > 1 || !before.IsZero() && r.started.Sub(before) < r.CrawlDelay-slack {
			t.Errorf("a request with the interval %v started %v after another, or at the same time", r.CrawlDelay, r.started.Sub(before))
		}
	}
}

// checkTurns counts the turns of other crawlers while a request was the next of its crawler.
func checkTurns(t *testing.T, starts []*fuzzRequest) {
	t.Helper()
	last := map[string]time.Time{} // the last start of a crawler
	for i, r := range starts {
		next := r.arrived
		if last[r.Crawler].After(next) {
			next = last[r.Crawler]
		}
		last[r.Crawler] = r.started
		turns := map[string]int{}
		for _, other := range starts[:i] {
			if other.started.After(next) && other.started.Before(r.started) {
				if turns[other.Crawler]++; turns[other.Crawler] > 1 && other.Crawler != r.Crawler {
					t.Errorf("crawler %s has waited for two turns of %s", r.Crawler, other.Crawler)
				}
			}
		}
	}
}
