package config

import "robotsgate/internal/keyfile"

// Agents returns the agents of all crawlers with requests that are signed, in the order of the crawlers.
func (c *Config) Agents() (agents []keyfile.Agent) {
	for i := range c.Crawlers {
		agents = c.Crawlers[i].Sign.Add(agents)
	}
	return agents
}
