package policy

import "time"

// Resolution returns what an origin's robots.txt, as far as it is known, means now
// to the crawler of a request. It asks nobody: due says that the next
// request would. If nothing is known that speaks for the origin, ok is false.
func (e *Engine) Peek(r Request) (st Resolution, due, ok bool) {
	l := e.robots
	key, _ := keyAndURL(r)
	known := l.cache.quick(key)
	if known == nil {
		known = l.cache.stored(key)
	}
	if known == nil {
		return Resolution{}, false, false
	}
	now, token := time.Now(), tokenKey(r.Crawler.Obeys(r.UserAgent))
	s := l.robots.current(&known.Record, token, now, now)
	if s == nil {
		s, due = known.newest(token), true
	}
	if s == nil {
		return Resolution{}, false, false
	}
	st, ok, _ = l.judge(key, token, known, s, now)
	return st, due, ok
}
