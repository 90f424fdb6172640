package snapshot

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"time"
)

// fetch returns an origin's answer, with the file parsed if it has one.
func (r *Resolver) fetch(sf *scopeFetches, job *fetchJob, known *entry) (s *Snapshot, file content, err error) {
	url := sf.scope.URL()
	defer func() {
		if p := recover(); p != nil { // it would end the process
			r.log.Error("panic while fetching a file; please report it", "url", url, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("fetch %s: internal error", url)
		}
	}()
	prior := known // the copy that the origin may confirm
	if good := known.copyFor(job.bound); good != known.Good {
		if prior = r.copyEntry(sf.key, job.bound, good); prior == nil {
			prior = &entry{}
		}
	}
	begun, outcome := time.Now(), "error"
	f := fetcher{job.Transport, job.settings, r.large}
	s, file, err = f.fetch(r.ctx, sf.scope, url, job.UserAgent, prior)
	if r.ctx.Err() != nil {
		return nil, nil, shutDown(sf.scope) // a fetch that was cut short says nothing about the origin
	}
	took := time.Since(begun)
	if err != nil {
		err = fmt.Errorf("fetch %s: %w", url, err)
	} else {
		outcome = string(job.settings.Classify(s))
		r.log.Debug("file fetched", "url", url, "status", s.Status, "error", s.Error, "file", file != nil, "took", took)
	}
	r.config.OnFetch(Fetch{Origin: sf.scope.Origin, TDMRep: sf.scope.TDMRep, Outcome: outcome, Took: took})
	return s, file, err
}

// keepLocked adds the answer of a job to what is known. Other jobs may have ended since this one
// was started. It returns the answer as it is kept. Release is called when the store has it.
func (r *Resolver) keepLocked(sf *scopeFetches, job *fetchJob, s *Snapshot, file content, release func()) *Snapshot {
	set, settings := &sf.entry.Set, r.settingsFor(sf.scope)
	sf.apart = !s.shared()
	if sf.apart && isNoSlot(job.bound) {
		s = forOthers(s)
	}
	settings.count(s, set, job.bound)
	next := set.add(job.bound, s)
	if r.config.Shared {
		next.note(job.bound, s)
	}
	settings.vacate(&next, sf.jobs, time.Now())
	if s.good() && !s.shared() {
		// The rules of a copy for one crawler are kept in a set of their own.
		r.cache.put(copyKey(sf.key, job.bound), &entry{Set: Set{Good: s, Last: s}, file: file}, nil)
	}
	for slot := range set.Copies {
		if next.Copies[slot] == nil {
			r.cache.put(copyKey(sf.key, slot), &entry{}, nil) // so that the store forgets it
		}
	}
	switch {
	case next.Good == nil:
		file = nil
	case next.Good != s:
		file = sf.entry.file
	}
	sf.entry = &entry{Set: next, file: file}
	r.cache.put(sf.key, sf.entry, release)
	return s
}

// forOthers returns the answer that all clients without a slot share. s is the answer to one of
// them. The result has no rules, since those of s are for that crawler only.
func forOthers(s *Snapshot) *Snapshot {
	return &Snapshot{
		URL: s.URL, Status: s.Status, Fetched: s.Fetched, Lifetime: s.Lifetime, Retry: s.Retry, Looped: s.Looped, Varies: s.Varies, NoSlot: true,
		Error: fmt.Sprintf("the origin answers crawlers differently (status %d), and more crawlers ask for it than can have an answer of their own; one with configured product tokens always has one", s.Status),
	}
}

// count sets s.Since and s.Failures: since when the origin has given answers of the class of s, and
// how many failures in a row there were. If the answer before is of that class, count continues
// its figures.
func (c *Settings) count(s *Snapshot, set *Set, slot string) {
	class := c.Classify(s)
	if class == Fresh {
		return
	}
	s.Since = s.Fetched
	if before := set.newest(slot); before != nil && !before.good() && c.Classify(before) == class {
		s.Since, s.Failures = before.Since, before.Failures
	}
	if class == Unreachable {
		s.Failures++
	}
}

// forgetCopy drops a copy without rules in the store, unless there is another one by now.
func (r *Resolver) forgetCopy(sf *scopeFetches, slot string, gone *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone != nil && sf.entry.Copies[slot] == gone {
		set := sf.entry.Set
		set.Copies = maps.Clone(set.Copies)
		delete(set.Copies, slot)
		sf.entry = &entry{Set: set, file: sf.entry.file}
	}
}

func shutDown(s Scope) error {
	return fmt.Errorf("fetch %s: the gate is shutting down: %w", s.URL(), context.Canceled)
}
