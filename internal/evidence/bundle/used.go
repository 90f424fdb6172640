package bundle

import (
	"io/fs"
	"maps"
	"slices"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/replay"
	"robotsgate/policy/snapshot"
)

// used notes what of the evidence the decisions about some entries need, as these are decided again.
type used struct {
	replay.Evidence
	cited          map[string]bool // digests of the files that decided
	bodies         map[string]bool
	configurations map[string]bool
	origins        map[string]*judged
}

// judged is the times of an origin's answers that entries cite, and of the decisions by them.
type judged struct{ from, to time.Time }

func newUsed(e replay.Evidence) *used {
	return &used{Evidence: e, cited: map[string]bool{}, bodies: map[string]bool{}, configurations: map[string]bool{}, origins: map[string]*judged{}}
}

// entry notes what an entry cites, before it is decided again.
func (u *used) entry(r *audit.Entry) {
	if r.TDMRep != "" {
		u.cited[r.TDMRep] = true
	}
	if r.Robots == nil {
		return
	}
	if r.Robots.SHA256 != "" {
		u.cited[r.Robots.SHA256] = true
	}
	j := u.origins[r.Origin]
	if j == nil {
		j = &judged{r.Robots.Judged, r.Robots.Judged}
		u.origins[r.Origin] = j
	}
	for _, a := range []*audit.Answer{&r.Robots.Answer, r.Robots.Instead, r.Robots.Copy} {
		if a != nil && a.Fetched.Before(j.from) {
			j.from = a.Fetched
		}
	}
	if r.Robots.Judged.After(j.to) {
		j.to = r.Robots.Judged
	}
}

// minTruncated is the smallest limit on a robots.txt (RFC 9309, 2.5). A file that is longer may be the whole one of
// which an entry cites the beginning.
const minTruncated = 500 << 10

// Body returns the file with a digest.
func (u *used) Body(digest string) (string, error) {
	body, err := u.Evidence.Body(digest)
	if err == nil && (u.cited[digest] || len(body) > minTruncated) {
		u.bodies[digest] = true
	}
	return body, err
}

// Configuration returns the text of the configuration with a digest.
func (u *used) Configuration(digest string) ([]byte, error) {
	text, err := u.Evidence.Configuration(digest)
	if err == nil {
		u.configurations[digest] = true
	}
	return text, err
}

// slack is more than the time between an answer and a decision that it can concern, and more than fetches take.
const slack = time.Hour

// answers calls each for the answers of all origins that can concern the entries, sorted by URL and time.
func (u *used) answers(each func(answer) error) error {
	for _, origin := range slices.Sorted(maps.Keys(u.origins)) {
		j := u.origins[origin]
		for _, file := range []struct {
			path    string
			history func(string) ([]snapshot.Answer, error)
		}{{robotsPath, u.History}, {tdmrepPath, u.TDMRepHistory}} {
			all, err := file.history(origin)
			if err != nil {
				return err
			}
			for i := range all {
				a := &all[i]
				if a.From.After(j.to.Add(slack)) || !a.To.IsZero() && a.To.Before(j.from.Add(-slack)) {
					continue
				}
				if err := each(answerOf(origin+file.path, a)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Several is the evidence of several gates, such as those of a fleet.
type Several []replay.Evidence

// Configuration returns the text of a configuration that one of them has.
func (s Several) Configuration(digest string) ([]byte, error) {
	return first(s, func(e replay.Evidence) ([]byte, error) { return e.Configuration(digest) })
}

// Body returns a file that one of them has.
func (s Several) Body(digest string) (string, error) {
	return first(s, func(e replay.Evidence) (string, error) { return e.Body(digest) })
}

func first[T any](s Several, of func(replay.Evidence) (T, error)) (v T, err error) {
	err = fs.ErrNotExist
	for _, e := range s {
		if v, err = of(e); err == nil {
			return v, nil
		}
	}
	return v, err
}

// History returns the answers that any of them has, the oldest first.
func (s Several) History(origin string) ([]snapshot.Answer, error) {
	return merged(s, func(e replay.Evidence) ([]snapshot.Answer, error) { return e.History(origin) })
}

// TDMRepHistory returns those about tdmrep.json.
func (s Several) TDMRepHistory(origin string) ([]snapshot.Answer, error) {
	return merged(s, func(e replay.Evidence) ([]snapshot.Answer, error) { return e.TDMRepHistory(origin) })
}

func merged(s Several, of func(replay.Evidence) ([]snapshot.Answer, error)) (all []snapshot.Answer, err error) {
	for _, e := range s {
		some, err := of(e)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b snapshot.Answer) int { return a.From.Compare(b.From) })
	return all, nil
}
