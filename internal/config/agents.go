package config

import (
	"slices"
	"strings"

	"robotsgate/internal/keyfile"
)

// An Agent is an https origin that publishes the keys of one or several crawlers.
type Agent struct {
	Origin string         // in canonical form, see [ParseAgent]
	Keys   []*keyfile.Key // each once, in the order of the crawlers
}

// Authority returns the host of the agent, with its port unless that is 443.
func (a Agent) Authority() string { return strings.TrimPrefix(a.Origin, "https://") }

// Agents returns the agents of all crawlers with requests that are signed, in the order of the crawlers.
func (c *Config) Agents() (agents []Agent) {
	for _, crawler := range c.Crawlers {
		key, origin := crawler.Sign.key, crawler.Sign.Agent
		if key == nil {
			continue
		}
		i := slices.IndexFunc(agents, func(a Agent) bool { return a.Origin == origin })
		if i < 0 {
			i = len(agents)
			agents = append(agents, Agent{Origin: origin})
		}
		agents[i].Keys = keyfile.Unique(append(agents[i].Keys, key))
	}
	return agents
}
