package keyfile

import (
	"slices"
	"strings"
)

// An Agent is an https origin that publishes the keys of one or several crawlers.
type Agent struct {
	Origin string // in canonical form, see [ParseAgent]
	Keys   []*Key // each once, in the order of the crawlers
}

// Authority returns the host of the agent, with its port unless that is 443.
func (a Agent) Authority() string { return strings.TrimPrefix(a.Origin, "https://") }

// Add adds the key and the agent of a crawler to agents, if its requests are signed.
func (c *Config) Add(agents []Agent) []Agent {
	if c.key == nil {
		return agents
	}
	i := slices.IndexFunc(agents, func(a Agent) bool { return a.Origin == c.Agent })
	if i < 0 {
		i = len(agents)
		agents = append(agents, Agent{Origin: c.Agent})
	}
	agents[i].Keys = Unique(append(agents[i].Keys, c.key))
	return agents
}
