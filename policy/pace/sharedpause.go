package pace

import "time"

const (
	// firstPoll is the time between two looks whether that answer is there.
	firstPoll = 100 * time.Millisecond
	// drift is how much the begin of one pause may differ when it is computed twice.
	drift = time.Second
)

// admitAfterPause asks the pause that the gates share whether a request that has its turn may start; if not, it waits for
// another turn. If the clock can't be used, this gate's own pauses decide, by which the request has its turn.
func (p *Pacer) admitAfterPause(t *Turn) (bool, error) {
	if p.clock == nil {
		return true, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sharesPauses() {
		return true, nil
	}
	var mine Pause
	if o := p.origins[t.request.Origin]; o != nil {
		if own := o.pause(t.request.Token, false); own != nil {
			mine = *own
		}
	}
	var wait time.Duration
	longest := p.settings.BackOff
	s, err := p.changePause(t, mine, func(s *Pause, _, now time.Duration) (first bool) {
		wait, first = s.admit(now, longest)
		return first
	})
	switch {
	case err != nil:
		return true, nil
	case s.Row == 0:
		p.lift(t, s)
		return true, nil
	}
	o, err := p.learn(t, s, p.now()+wait)
	if err != nil {
		return false, err
	}
	if own := o.pause(t.request.Token, false); wait == 0 {
		own.First, own.firstAt = true, t.start
	} else if t.first {
		own.First = false
	}
	p.pumpSoon(o, p.now())
	return wait == 0, nil
}

// admit returns how long a request has to wait for a pause that gates share, and whether it is now the first
// after it.
func (p *Pause) admit(now, longest time.Duration) (wait time.Duration, first bool) {
	switch {
	case p.Row == 0:
		return 0, false
	case p.Until > now && p.First:
		return min(p.Until-now, firstPoll), false
	case p.Until > now:
		return p.Until - now, false
	}
	p.First, p.Until = true, now+firstWait
	p.Ends = p.Until + longest
	return 0, true
}

// shareAnswer applies an answer to the pause that the gates share. mine is this gate's own pause before the
// answer. The lock is released meanwhile.
func (p *Pacer) shareAnswer(t *Turn, a Response, mine Pause) {
	if !p.sharesPauses() {
		return
	}
	longest := p.settings.BackOff
	s, err := p.changePause(t, mine, func(s *Pause, start, now time.Duration) bool {
		s.First = s.First || t.first // a request of report mode asks no other gate
		return s.answered(a, start, now, longest)
	})
	if err == nil && s.Row > 0 {
		_, _ = p.learn(t, s, s.Until)
	}
}

// sharesPauses reports whether pauses hold over several gates.
func (p *Pacer) sharesPauses() bool { return p.clock != nil && p.settings.BackOff > 0 }

// changePause changes the pause that the gates share for a request's token and origin. It takes mine, this
// gate's own, for the shared one if that has begun before or is not known. It returns the pause by this gate's time.
//
// change gets the start of the request and the time by the shared clock, and reports whether it has changed
// something. The lock is released meanwhile.
func (p *Pacer) changePause(t *Turn, mine Pause, change func(s *Pause, start, now time.Duration) bool) (s Pause, err error) {
	longest := p.settings.BackOff
	p.mu.Unlock()
	defer p.mu.Lock()
	err = p.clock.Pause(t.request.Origin, t.request.Token, func(shared *Pause, now time.Duration) bool {
		ahead := now - p.now()
		shared.bound(now, longest)
		if mine.Row > 0 && (shared.Ends == 0 || mine.Since+ahead > shared.Since+drift) {
			*shared = mine.moved(ahead)
		}
		changed := change(shared, t.start+ahead, now)
		s = shared.moved(-ahead)
		return changed
	})
	return s, err
}

// bound makes of a shared pause what this gate obeys: none if it has ended long ago, or is from the future since
// the clock was set back.
func (p *Pause) bound(now, longest time.Duration) {
	if p.Since < 0 || p.Since > now || p.Row < 0 || p.Ends <= now {
		*p = Pause{}
	}
	p.Until, p.Ends = min(p.Until, now+longest), min(p.Ends, now+2*longest)
}

// moved returns the pause with other times.
func (p Pause) moved(by time.Duration) Pause {
	p.Since, p.Until, p.Ends = p.Since+by, p.Until+by, p.Ends+by
	return p
}

// learn notes a pause that the gates share.
func (p *Pacer) learn(t *Turn, s Pause, until time.Duration) (*origin, error) {
	o := p.origins[t.request.Origin]
	if o == nil {
		if o = p.remember(t.request.Origin, p.now()); o == nil {
			return nil, &TooLate{After: max(until-p.now(), 0), By: ByPause, Full: true}
		}
	}
	own := o.pause(t.request.Token, true)
	if s.Since >= own.Since {
		own.Since, own.Row = s.Since, s.Row
	}
	own.Until, own.Ends = max(own.Until, until), max(own.Ends, s.Ends)
	return o, nil
}

// lift ends this gate's own pause after the series has ended at another gate.
func (p *Pacer) lift(t *Turn, s Pause) {
	o := p.origins[t.request.Origin]
	if o == nil {
		return
	}
	if own := o.pause(t.request.Token, false); own != nil && own.Since <= s.Since {
		delete(o.pauses, o.key(t.request.Token))
		p.pumpSoon(o, p.now())
	}
}
