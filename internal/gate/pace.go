package gate

import (
	"net/http"

	"robotsgate/internal/admin"
	"robotsgate/policy/pace"
)

// newPacer returns a pacer. In a fleet its distances hold over all gates.
func (g *Gate) newPacer() *pace.Pacer {
	c := g.config.Pace
	if g.fleet == nil {
		return pace.New(c, nil)
	}
	return pace.New(c, g.fleet.Clock())
}

// fetching returns what sends the fetches of robots.txt. If there is a pace, they count as starts, but
// never wait.
func (g *Gate) fetching() http.RoundTripper {
	if !g.config.Pace.On() {
		return g.wrapped()
	}
	return countedFetches{g.wrapped(), g.pacer}
}

// countedFetches tells the pacer of each request.
type countedFetches struct {
	http.RoundTripper
	pacer *pace.Pacer
}

func (f countedFetches) RoundTrip(r *http.Request) (*http.Response, error) {
	f.pacer.Started(r.URL.Scheme + "://" + r.URL.Host)
	return f.RoundTripper.RoundTrip(r)
}

// queues returns the origins for which requests wait, for the status page.
func (g *Gate) queues() (all []admin.Queue) {
	for _, q := range g.pacer.Queues() {
		all = append(all, admin.Queue{Origin: q.Origin, Waiting: q.Waiting, Longest: q.Longest.Seconds()})
	}
	return all
}
