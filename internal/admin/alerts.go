package admin

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/fleet"
	"robotsgate/policy/snapshot"
)

// An Alert is a problem that an operator should solve.
type Alert struct {
	Kind    string   `json:"kind"` // a word for programs
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	Do      string   `json:"do"` // what solves it
}

// maxDetails bounds the details of an alert.
const maxDetails = 10

// alerts returns the alerts of the gate, of the last hour and of the outages. It is never nil,
// since a program expects a list.
func (a *admin) alerts(s *status) []Alert {
	all := []Alert{}
	if a.Alerts != nil {
		all = append(all, a.Alerts()...)
	}
	if s.Fleet != nil {
		all = append(all, ofFleet(s.Fleet, s.Now)...)
	}
	if s.Evidence != nil {
		all = append(all, ofEvidence(s.Evidence)...)
	}
	all = append(all, refusedLogins(s.Causes)...)
	all = append(all, unreachable(s.Unreachable, s.Now)...)
	for i := range all {
		all[i].bound()
	}
	return all
}

// bound leaves the first details and says how many more there are.
func (a *Alert) bound() {
	if more := len(a.Details) - maxDetails; more > 0 {
		a.Details = append(a.Details[:maxDetails:maxDetails], fmt.Sprintf("and %d more", more))
	}
}

func ofFleet(f *fleet.Status, now time.Time) (all []Alert) {
	if f.State != fleet.Connected {
		all = append(all, Alert{
			Kind: "fleet", Text: fmt.Sprintf("The fleet's store is away, for %s. This gate goes on alone:", since(f.Since, now)), Details: []string{cmp.Or(f.Error, "it does not answer")},
			Do: "Check the store, and the network to it. The gate tries again by itself. robotsgate doctor -c FILE, on this machine, says what is wrong.",
		})
	}
	return all
}

func ofEvidence(e *audit.Status) (all []Alert) {
	if e.Broken != "" {
		all = append(all, Alert{
			Kind: "evidence", Text: "The audit log could not be continued at the start, so a new one has begun: " + e.Name, Details: []string{e.Broken},
			Do: "Find out who changed the log or data_dir, and keep what is left: robotsgate audit --verify shows it.",
		})
	}
	if e.Error != "" {
		all = append(all, Alert{
			Kind: "checkpoint", Text: "The audit log gets no checkpoint, so its newest records are not signed:", Details: []string{e.Error},
			Do: "Check the space and permissions of data_dir. The gate tries again by itself.",
		})
	}
	return all
}

func refusedLogins(causes []Cause) []Alert {
	for _, c := range causes {
		if c.Kind == Login {
			return []Alert{{
				Kind: "logins", Text: fmt.Sprintf("Requests refused in the last hour since their client is none of the crawlers: %d", c.Requests),
				Do: "Give the client the login of a crawler, or add its address or User-Agent to a crawler of the configuration. The latest refusals and the log name the clients.",
			}}
		}
	}
	return nil
}

// unreachable returns the alert about origins to which the gate denies all requests, since their
// robots.txt is unreachable.
func unreachable(outages []snapshot.Outage, now time.Time) []Alert {
	a := Alert{
		Kind: "unreachable", Text: "The robots.txt of these origins is unreachable, so all requests to them are denied:",
		Do: "Check the network, DNS and the TLS certificate of the origin. The gate tries again by itself. Until then you can allow a request with an override.",
	}
	for _, o := range outages {
		if o.State == snapshot.Unreachable && !o.Allow {
			a.Details = append(a.Details, fmt.Sprintf("%s, for %s: %s", o.Origin, since(o.Since, now), cmp.Or(o.Error, "no answer")))
		}
	}
	if a.Details == nil {
		return nil
	}
	return []Alert{a}
}

// since returns how long ago a time was, in words. Programs read them too, so there is no space that does not break.
func since(t, now time.Time) string {
	return strings.ReplaceAll(lasted(int64(now.Sub(t)/time.Second)), "\u00a0", " ")
}
