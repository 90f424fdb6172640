package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// known is what is kept of an origin: the snapshot in force for the client of the query, the
// last answers, and the history.
type known struct {
	Origin string `json:"origin"`
	*inForce
	Asker   string `json:"asker"`  // by which the origin knows the client of the query, see [snapshot.Resolver.Scope]
	Robots  set    `json:"robots"` // the answers to it
	History []Past `json:"history,omitempty"`
	Body    string `json:"body,omitempty"`
}

// A Past is an answer of an origin, and when it was in force.
type Past struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to,omitzero"` // zero: it still is
	Asker  string    `json:"asker"`       // which it bound
	Status int       `json:"status,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"`
	SHA256 string    `json:"sha256,omitempty"`
	Error  string    `json:"error,omitempty"`
}

type inForce struct {
	State   snapshot.State `json:"state"`
	Status  int            `json:"status,omitempty"` // 0: there was no response
	Fetched time.Time      `json:"fetched"`
	Age     int64          `json:"age"` // seconds
	SHA256  string         `json:"sha256,omitempty"`
	HTML    bool           `json:"html,omitempty"` // a page in its place
	Error   string         `json:"error,omitempty"`
	Due     bool           `json:"due,omitempty"` // the next request fetches it
}

func standing(st snapshot.Resolution, due bool) *inForce {
	s := st.Snapshot
	return &inForce{st.State, s.Status, second(s.Fetched), int64(st.Age / time.Second), s.SHA256, s.HTML, s.Error, due}
}

// A set is a snapshot.Set as JSON.
type set struct {
	Good *answer `json:"good,omitempty"` // the last with rules
	Last *answer `json:"last,omitempty"` // the last that states the origin's answer
}

type answer struct {
	URL        string    `json:"url"`
	Status     int       `json:"status,omitempty"`
	Error      string    `json:"error,omitempty"`
	Fetched    time.Time `json:"fetched"`
	SHA256     string    `json:"sha256,omitempty"`
	Truncated  bool      `json:"truncated,omitempty"`
	Looped     bool      `json:"looped,omitempty"`
	ETag       string    `json:"etag,omitempty"`
	Modified   string    `json:"last_modified,omitempty"`
	Lifetime   *int64    `json:"lifetime,omitempty"`    // seconds; nil: the origin does not state it
	RetryAfter int64     `json:"retry_after,omitempty"` // seconds
	Failures   int       `json:"failures,omitempty"`
	Since      time.Time `json:"since,omitzero"`
}

func setOf(s snapshot.Set) set { return set{Good: answerOf(s.Good), Last: answerOf(s.Last)} }

func answerOf(s *snapshot.Snapshot) *answer {
	if s == nil {
		return nil
	}
	out := &answer{
		URL: s.URL, Status: s.Status, Error: s.Error, Fetched: second(s.Fetched), SHA256: s.SHA256, Truncated: s.Cut, Looped: s.Looped,
		ETag: s.ETag, Modified: s.Modified, RetryAfter: int64(s.Retry / time.Second), Failures: s.Failures, Since: second(s.Since),
	}
	if s.Lifetime >= 0 {
		out.Lifetime = new(int64(s.Lifetime / time.Second))
	}
	return out
}

// second removes the fraction of a second.
func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func (a *admin) robots(r *http.Request) (known, int, error) {
	target, err := canonical.ParseURL(r.URL.Query().Get("origin"))
	if err != nil {
		return known{}, http.StatusBadRequest, fmt.Errorf("origin: %w", err)
	}
	origin := target.Origin()
	ask := a.request(target, r.URL.Query().Get("agent"))
	scope, answers, ok := a.Engine.Known(r.Context(), ask)
	for _, k := range a.Engine.Crawlers().Known {
		if ok || ask.UserAgent != "" {
			break
		}
		ask.Crawler = k // the first that has an answer
		scope, answers, ok = a.Engine.Known(r.Context(), ask)
	}
	if !ok {
		return known{}, http.StatusNotFound, errors.New("no robots.txt of " + origin + " is known yet")
	}
	k := known{Origin: origin, Asker: scope.Asker, Robots: setOf(answers)}
	if st, due, ok := a.Engine.Peek(r.Context(), ask); ok {
		k.inForce = standing(st, due)
		if st.File != nil {
			k.Body = st.File.Body()
		}
	}
	if a.History != nil {
		k.History, err = a.History(origin)
	}
	return k, http.StatusInternalServerError, err
}

func (a *admin) refresh(r *http.Request) (any, int, error) {
	target, err := canonical.ParseURL(r.URL.Query().Get("origin"))
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("origin: %w", err)
	}
	st, err := a.Engine.Refresh(r.Context(), a.request(target, r.URL.Query().Get("agent")))
	if err != nil {
		return nil, http.StatusBadGateway, err
	}
	out := struct {
		Origin string `json:"origin"`
		*inForce
		Failed *answer `json:"failed,omitempty"` // the origin's answer, if a copy is obeyed in its place
	}{Origin: target.Origin(), inForce: standing(st, false)}
	if st.Answer != st.Snapshot {
		out.Failed = answerOf(st.Answer)
	}
	return out, http.StatusOK, nil
}
