package gate

import (
	"robotsgate/internal/keyfile"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// sign makes the crawlers of the configuration that have a key sign their requests.
func (g *Gate) sign(crawlers policy.Crawlers) {
	for i, k := range g.config.Crawlers {
		key := k.Sign.Key()
		if key == nil {
			continue
		}
		s := proxy.Signing{Key: key, Agent: k.Sign.Agent, Dictionary: k.Sign.Form == keyfile.DictionaryAgent}
		crawlers.Known[i].Wrap, crawlers.Known[i].KeyID = s.Transport, key.ID()
	}
}

// logSigning logs the crawlers that sign their requests. Origins refuse signatures from the future, so that the clock
// must be right.
func (g *Gate) logSigning() {
	for _, k := range g.config.Crawlers {
		if key := k.Sign.Key(); key != nil {
			g.log.Info("requests are signed", "crawler", k.Name, "keyid", key.ID(), "agent", k.Sign.Agent)
		}
	}
}

// Agents returns the agents of all crawlers with requests that are signed, in the order of the crawlers.
func (c *Config) Agents() (agents []keyfile.Agent) {
	for i := range c.Crawlers {
		agents = c.Crawlers[i].Sign.Add(agents)
	}
	return agents
}
