package gate

import (
	"robotsgate/internal/keyfile"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// sign makes the crawlers of the configuration that have a key sign their requests. The origins that have asked for
// signatures are remembered over changes of the configuration.
func (g *Gate) sign(crawlers policy.Crawlers) {
	for i, k := range g.config.Crawlers {
		key := k.Sign.Key()
		if key == nil {
			continue
		}
		s := proxy.Signing{Crawler: k.Name, Key: key, Agent: k.Sign.Agent, Dictionary: k.Sign.Form == keyfile.DictionaryAgent}
		if k.Sign.When == keyfile.SignAsked {
			s.Asked = &g.asked
		}
		crawlers.Known[i].Wrap = s.Transport
	}
}

// logSigning logs the crawlers that sign their requests. Origins refuse signatures from the future, so that the clock
// must be right.
func (g *Gate) logSigning() {
	for _, k := range g.config.Crawlers {
		if key := k.Sign.Key(); key != nil {
			g.log.Info("requests are signed", "crawler", k.Name, "keyid", key.ID(), "agent", k.Sign.Agent, "when", string(k.Sign.When))
		}
	}
}
