package pace

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

var patient = Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 10 * time.Minute, MaxQueue: 1000, BackOff: time.Minute}

func busy(retryAfter string) Response {
	return Response{Status: http.StatusTooManyRequests, RetryAfter: retryAfter}
}

// TestPause: a token's requests pause after a 429; then one goes first, and the others follow when its
// answer is there.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(patient)
		turn, err := s.Wait(t.Context(), to("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		turn.Done(busy("10"))
		first := make(chan *Turn)
		s.wg.Go(func() {
			turn, err := s.Wait(t.Context(), to("a", 0))
			if err != nil {
				t.Error(err)
			}
			s.add("first")
			first <- turn
		})
		synctest.Wait()
		for i := range 2 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", 0), ok)
		}
		s.send(t.Context(), "b", to("b", 0), ok)
		turn = <-first
		time.Sleep(3 * time.Second) // fake clock: the answer takes 3 s
		turn.Done(ok)
		s.wants(t, "0s b", "10s first", "13s a0", "13s a1")
	})
}

// TestPausesDouble: without a readable Retry-After pauses last 5 s and double, up to BackOff; another
// answer ends the series.
func TestPausesDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(patient)
		var held []time.Duration
		for _, a := range []Response{busy(""), busy("soon"), {Status: 503}, busy(""), busy(""), busy("-1"), ok, busy(""), ok} {
			turn, err := s.Wait(t.Context(), to("a", 0))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, turn.Held)
			turn.Done(a)
		}
		want := []time.Duration{0, 5, 10, 20, 40, 60, 60, 0, 5}
		for i, d := range held {
			if d != want[i]*time.Second {
				t.Errorf("request %d was held for %v, want %v s", i, d, int64(want[i]))
			}
		}
	})
}

// TestPauseIsRefused: a request with a longer pause than MaxWait is refused.
func TestPauseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := patient
		settings.MaxWait = 5 * time.Second
		s := newSchedule(settings)
		s.send(t.Context(), "a", to("a", 0), busy("30"))
		s.wg.Wait()
		s.send(t.Context(), "again", to("a", 0), ok)
		s.wants(t, "0s a", "0s again too late by 30s, back-off, full false")
	})
}

// TestAnswersInFlight: answers to requests that had started before a pause do not double it, and do
// not end it.
func TestAnswersInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(patient)
		var turns []*Turn
		for range 4 {
			turn, err := s.Wait(t.Context(), to("a", 0))
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, turn)
		}
		time.Sleep(time.Second) // fake clock
		for i, a := range []Response{busy(""), busy(""), busy("8"), ok} {
			turns[i].Done(a)
		}
		s.send(t.Context(), "a", to("a", 0), ok)
		s.wants(t, "9s a")
	})
}

// TestFirstFails: if the first request after a pause gets no answer, another goes first.
func TestFirstFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(patient)
		s.send(t.Context(), "a", to("a", 0), busy("5"))
		s.wg.Wait()
		s.send(t.Context(), "fails", to("a", 0), Response{})
		s.send(t.Context(), "follows", to("a", 0), ok)
		s.wants(t, "0s a", "5s fails", "5s follows")
	})
}

// TestFirstIsSlow: if the answer to the first request after a pause takes longer than firstWait, another goes first.
// A client that sends its request slowly must not hold those of others. That the slow one ends is no answer.
func TestFirstIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(patient)
		s.send(t.Context(), "a", to("a", 0), busy("5"))
		s.wg.Wait()
		slow, err := s.Wait(t.Context(), to("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		s.send(t.Context(), "goes first", to("a", 0), busy("20"))
		s.wg.Wait()
		slow.Done(ok)
		s.send(t.Context(), "waits", to("a", 0), ok)
		s.wants(t, "0s a", "10s goes first", "30s waits")
	})
}

// TestObservedInPause: a request in report mode starts during a pause, and its answer does not end the pause of others.
func TestObservedInPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(patient)
		s.send(t.Context(), "a", to("a", 0), busy("5"))
		s.wg.Wait()
		time.Sleep(time.Second) // fake clock
		turn, err := s.Observe(to("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		turn.Done(ok)
		s.send(t.Context(), "waits", to("a", 0), ok)
		s.wants(t, "0s a", "5s waits")
	})
}

// TestNoBackOff: without BackOff an origin's 429 changes nothing.
func TestNoBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		s.send(t.Context(), "a", to("a", 0), busy("5"))
		s.wg.Wait()
		s.send(t.Context(), "b", to("a", 0), ok)
		s.wants(t, "0s a", "0s b")
		if s.remembered() > 0 {
			t.Error("the origin is remembered")
		}
	})
}

// TestAlwaysBusy: an origin that answers every request with 429, to any number of tokens, takes bounded
// memory, and is forgotten.
func TestAlwaysBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxWait: time.Second, BackOff: time.Minute})
		for i := range 1000 {
			s.send(t.Context(), "a", to(fmt.Sprint("token", i), 0), busy(""))
		}
		s.wg.Wait()
		s.Pacer.mu.Lock()
		n := len(s.origins["http://shop.example:80"].pauses)
		s.Pacer.mu.Unlock()
		if n > 64+1 {
			t.Errorf("%d pauses are remembered", n)
		}
		time.Sleep(3 * time.Minute) // fake clock
		s.send(t.Context(), "other", Request{Origin: "http://other.example:80", CrawlDelay: time.Second}, ok)
		if n := s.remembered(); n != 1 {
			t.Errorf("%d origins are remembered", n)
		}
	})
}

// TestRetryAfter: a date counts from the date of the answer, and by the gate's clock only without one.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for _, c := range []struct {
			retryAfter, date string
			want             time.Duration // -1: unreadable
		}{
			{"0", "", 0}, {"120", "", 2 * time.Minute}, {"31536000", "", 365 * 24 * time.Hour},
			{"120", in(time.Hour), 2 * time.Minute},
			{in(time.Minute), "", time.Minute}, {in(-time.Hour), "", 0}, {in(365 * 24 * time.Hour), "", 365 * 24 * time.Hour},
			{in(time.Minute), in(0), time.Minute}, {in(time.Minute), "yesterday", time.Minute},
			{in(time.Hour + time.Minute), in(time.Hour), time.Minute},   // the origin's clock is ahead
			{in(-time.Hour + time.Minute), in(-time.Hour), time.Minute}, // or behind
			{in(time.Minute), in(time.Hour), 0}, {"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", math.MaxInt64},
			{"99999999999999999999", "", -1}, {"9223372036854775807", "", forever / time.Second * time.Second},
			{"", "", -1}, {"-1", "", -1}, {"+1", "", -1}, {"1.5", "", -1}, {" 1", "", -1}, {"1e3", "", -1}, {"soon", "", -1}, {"Mon, 99 Foo 2026 00:00:00 GMT", "", -1},
		} {
			a := Response{Status: 429, RetryAfter: c.retryAfter, Date: c.date}
			if got, ok := a.retryAfter(); ok != (c.want >= 0) || ok && got != c.want {
				t.Errorf("%q at %q: %v, %v, want %v", c.retryAfter, c.date, got, ok, c.want)
			}
		}
	})
}
