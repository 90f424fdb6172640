package snapshot

import (
	"context"
	"fmt"
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
	begun, outcome := time.Now(), "error"
	f := fetcher{job.Transport, job.settings, r.large}
	s, file, err = f.fetch(r.ctx, sf.scope, url, job.UserAgent, known)
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

// keepLocked adds the answer of a job to what is known. Release is called when the store has it.
func (r *Resolver) keepLocked(sf *scopeFetches, s *Snapshot, file content, release func()) {
	r.settingsFor(sf.scope).count(s, &sf.entry.Set)
	next := sf.entry.add(s)
	switch {
	case next.Good == nil:
		file = nil
	case next.Good != s:
		file = sf.entry.file
	}
	sf.entry = &entry{Set: next, file: file}
	r.cache.put(sf.key, sf.entry, release)
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
