package pace

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkLate measures how late due requests start, with 1,000 queues.
func BenchmarkLate(b *testing.B) {
	const queues, waiting, interval = 1000, 4, 500 * time.Millisecond
	p := New(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: time.Minute, MaxQueue: 1000}, nil)
	defer p.Close()
	var mu sync.Mutex
	var late []time.Duration
	for b.Loop() {
		var all sync.WaitGroup
		for i := range queues {
			r := Request{Origin: fmt.Sprint(i), Crawler: "a", Token: "a", CrawlDelay: interval}
			for n := range waiting {
				begun := time.Now()
				all.Go(func() {
					if _, err := p.Wait(b.Context(), r); err != nil {
						b.Error(err)
					}
					if over := time.Since(begun) % interval; n > 0 && over < interval/2 { // it started that long after a multiple of the interval
						mu.Lock()
						late = append(late, over)
						mu.Unlock()
					}
				})
			}
			time.Sleep(interval / queues) // real time: it is what this benchmark measures
		}
		all.Wait()
	}
	slices.Sort(late)
	b.ReportMetric(late[len(late)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(late[len(late)*99/100].Seconds()*1000, "p99-ms")
}

// BenchmarkUnpaced measures a request to an origin without a pace, while others have one.
func BenchmarkUnpaced(b *testing.B) {
	p := New(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: time.Minute, MaxQueue: 1000}, nil)
	defer p.Close()
	for i := range 1000 {
		p.Started(fmt.Sprint(i))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			turn, err := p.Wait(b.Context(), Request{Origin: "https://shop.example:443", Crawler: "a", Token: "a"})
			if err != nil {
				b.Fatal(err)
			}
			turn.Done(Answer{Status: 200})
		}
	})
}
