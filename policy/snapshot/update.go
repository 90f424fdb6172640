package snapshot

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// permitMargin is how much longer a gate waits for the fetch of another one than that may take.
	// The other one may have been killed, and its permission has to end, before a third one fetches.
	permitMargin = 4 * time.Second
	// stoppedAfter is the time of a fetch after which another gate may have had the permission for one: less than a
	// permission lasts that is not renewed.
	stoppedAfter = 2 * time.Second
)

// An update is an answer that is valid, and all that is known of the file.
type update struct {
	*entry
	answer *Snapshot
	from   Layer
}

// update brings an answer that is valid and was fetched after since. All requests with the same key wait for one such
// update. The first of them begins it.
func (r *Resolver) update(q question, since time.Time) <-chan singleflight.Result {
	asked := time.Now()
	return r.updates.DoChan(q.key, func() (_ any, err error) {
		if !r.begin() {
			return nil, shutDown(q.Scope)
		}
		defer r.running.Done()
		defer func() {
			if p := recover(); p != nil { // it would end the process
				r.log.Error("panic while fetching a file; please report it", "url", q.Scope.URL(), "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("fetch %s: internal error", q.Scope.URL())
			}
		}()
		return r.answer(q, asked, since)
	})
}

// answer looks for an answer in the store, or else fetches the file, and saves what it is.
func (r *Resolver) answer(q question, asked, since time.Time) (*update, error) {
	valid := func(known *entry) *Snapshot {
		s := q.settings.current(&known.Set, time.Now(), asked)
		if s == nil || !s.Fetched.After(since) {
			return nil
		}
		return s
	}
	known := r.learn(q.key) // another process may have saved an answer
	if s := valid(known); s != nil {
		return &update{known, s, InStore}, nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.settings.Timeout+permitMargin)
	release, changed := r.store.Acquire(ctx, q.key)
	cancel()
	if release != nil {
		defer release()
	}
	if changed {
		known = r.learn(q.key)
		if s := valid(known); s != nil {
			return &update{known, s, InStore}, nil
		}
	}
	begun := time.Now().Round(0) // by the wall clock, which goes on while a virtual machine is paused
	s, file, err := r.fetch(q, known)
	failed := err != nil || q.settings.Classify(s) == Unreachable
	if r.config.Shared && (failed || time.Now().Round(0).Sub(begun) > stoppedAfter) {
		// Another gate may have an answer by now, above all if this one was stopped meanwhile. Then
		// the failure says nothing about the origin, and an answer is older than that of a later fetch.
		now := r.learn(q.key)
		if s := valid(now); s != nil && (failed || s.Fetched.After(begun)) {
			return &update{now, s, InStore}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &update{r.accept(q, known, s, file), s, Fetched}, nil
}

// fetch returns an origin's answer, with the file parsed if it has one.
func (r *Resolver) fetch(q question, known *entry) (s *Snapshot, file content, err error) {
	url := q.Scope.URL()
	begun, outcome := time.Now(), "error"
	f := fetcher{q.Transport, q.settings, r.large}
	s, file, err = f.fetch(r.ctx, q.Scope, url, q.UserAgent, known)
	if r.ctx.Err() != nil {
		return nil, nil, shutDown(q.Scope) // a fetch that was cut short says nothing about the origin
	}
	took := time.Since(begun)
	if err != nil {
		err = fmt.Errorf("fetch %s: %w", url, err)
	} else {
		outcome = string(q.settings.Classify(s))
		r.log.Debug("file fetched", "url", url, "status", s.Status, "error", s.Error, "file", file != nil, "took", took)
	}
	r.config.OnFetch(Fetch{Origin: q.Scope.Origin, TDMRep: q.Scope.TDMRep, Outcome: outcome, Took: took})
	return s, file, err
}

// accept adds an answer to what is known. It saves the result before a request can be decided by it.
func (r *Resolver) accept(q question, known *entry, s *Snapshot, file content) *entry {
	if now := r.get(q.key); now != nil {
		known = now
	}
	q.settings.count(s, &known.Set)
	next := known.with(known.add(s), &entry{file: file})
	r.save(next)
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.get(q.key); now != nil && later(next.Refreshed, now.Refreshed) != next.Refreshed { // it was asked for meanwhile
		next = next.with(next.Set, next) // the one before may wait to be saved
		next.Refreshed = now.Refreshed
	}
	r.put(next)
	return next
}

// count sets s.Since and s.Failures: since when the origin has given answers of the class of s, and
// how many failures in a row there were. If the answer before is of that class, count continues
// its figures.
func (c *Settings) count(s *Snapshot, set *Set) {
	class := c.Classify(s)
	if class == Fresh {
		return
	}
	s.Since = s.Fetched
	if before := set.Last; before != nil && !before.good() && c.Classify(before) == class {
		s.Since, s.Failures = before.Since, before.Failures
	}
	if class == Unreachable {
		s.Failures++
	}
}

func shutDown(s Scope) error {
	return fmt.Errorf("fetch %s: the gate is shutting down: %w", s.URL(), context.Canceled)
}
