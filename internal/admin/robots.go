package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// known is what is kept of an origin: the snapshot in force for the client of the query, the
// last answers, and the history.
type known struct {
	Origin string `json:"origin"`
	*inForce
	Robots   set    `json:"robots"`             // for clients that match no configured crawler
	Crawlers *set   `json:"crawlers,omitempty"` // for the configured crawlers
	History  []Past `json:"history,omitempty"`
	Body     string `json:"body,omitempty"`

	crawler string // for which the snapshot is in force; empty: clients without a product token
}

// A Past is an answer of an origin, and when it was in force.
type Past struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to,omitzero"`        // zero: it still is
	Crawlers bool      `json:"crawlers,omitempty"` // it bound configured crawlers; otherwise other clients
	Crawler  string    `json:"crawler,omitempty"`  // it bound only the crawler with this name; empty: all
	Token    string    `json:"token,omitempty"`    // and this product token, in lower case; empty: all
	Status   int       `json:"status,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	SHA256   string    `json:"sha256,omitempty"`
	Error    string    `json:"error,omitempty"`
}

type inForce struct {
	State   snapshot.State `json:"state"`
	Status  int            `json:"status,omitempty"` // 0: there was no response
	Fetched time.Time      `json:"fetched"`
	Age     int64          `json:"age"` // seconds
	SHA256  string         `json:"sha256,omitempty"`
	Error   string         `json:"error,omitempty"`
	Due     bool           `json:"due,omitempty"` // the next request fetches it
}

func standing(st snapshot.Resolution, due bool) *inForce {
	s := st.Snapshot
	return &inForce{st.State, s.Status, second(s.Fetched), int64(st.Age / time.Second), s.SHA256, s.Error, due}
}

// A set is a snapshot.Set as JSON.
type set struct {
	Good *answer `json:"good,omitempty"` // the last with rules
	Last *answer `json:"last,omitempty"` // the last that states the origin's answer
	// Answers that bind one crawler only, without rules and with rules, by product token; that of a configured
	// crawler has its name and a slash before it.
	Bound  map[string]answer `json:"bound,omitempty"`
	Copies map[string]answer `json:"copies,omitempty"`
}

type answer struct {
	URL        string    `json:"url"`
	Status     int       `json:"status,omitempty"`
	Error      string    `json:"error,omitempty"`
	Fetched    time.Time `json:"fetched"`
	SHA256     string    `json:"sha256,omitempty"`
	Truncated  bool      `json:"truncated,omitempty"`
	Looped     bool      `json:"looped,omitempty"`
	Varies     bool      `json:"varies,omitempty"` // it names User-Agent in Vary
	ETag       string    `json:"etag,omitempty"`
	Modified   string    `json:"last_modified,omitempty"`
	Lifetime   *int64    `json:"lifetime,omitempty"`    // seconds; nil: the origin does not state it
	RetryAfter int64     `json:"retry_after,omitempty"` // seconds
	Failures   int       `json:"failures,omitempty"`
	Since      time.Time `json:"since,omitzero"`
}

func setOf(s snapshot.Set) set {
	return set{Good: answerOf(s.Good), Last: answerOf(s.Last), Bound: bySlot(s.Bound), Copies: bySlot(s.Copies)}
}

func bySlot(all map[string]*snapshot.Snapshot) map[string]answer {
	out := map[string]answer{}
	for slot, s := range all {
		out[strings.TrimPrefix(slot, "/")] = *answerOf(s)
	}
	return out
}

func answerOf(s *snapshot.Snapshot) *answer {
	if s == nil {
		return nil
	}
	out := &answer{
		URL: s.URL, Status: s.Status, Error: s.Error, Fetched: second(s.Fetched), SHA256: s.SHA256, Truncated: s.Cut, Looped: s.Looped, Varies: s.Varies,
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
	anyone, others := a.Engine.Snapshots().Known(r.Context(), snapshot.Scope{Origin: origin})
	ofCrawlers, crawlers := a.Engine.Snapshots().Known(r.Context(), snapshot.Scope{Origin: origin, Crawlers: true})
	if !others && !crawlers {
		return known{}, http.StatusNotFound, errors.New("no robots.txt of " + origin + " is known yet")
	}
	k := known{Origin: origin, Robots: setOf(anyone)}
	if crawlers {
		k.Crawlers = new(setOf(ofCrawlers))
	}
	agent := r.URL.Query().Get("agent")
	ask := a.request(target, agent)
	all := a.Engine.Crawlers()
	if agent == "" && ask.Crawler == all.Default && len(all.Known) > 0 && (all.RefuseUnknown || !others) {
		ask.Crawler = all.Known[0] // since only they have a robots.txt
	}
	if agent != "" || ask.Crawler != all.Default {
		k.crawler = ask.Crawler.Name
	}
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
