package cli

import (
	"robotsgate/internal/admin"
	"robotsgate/policy"
)

// oversee adds what the status page shows.
func (g *gate) oversee(a *admin.Options) {
	engine := g.engine // a reload changes the field, and makes new pages
	a.Overview = g.overview
	a.Proxy = "http://" + g.listener.Addr().String()
	a.Connections = func() admin.Connections {
		c := g.proxy.Connections()
		return admin.Connections{Open: c.Open, Tunnels: c.Tunnels}
	}
	a.History = g.store.history()
	a.Sizes = func() []admin.Size { return g.sizes(engine) }
}

func (g *gate) sizes(engine *policy.Engine) []admin.Size {
	rules, tags := engine.Cached(), g.remembered.Size()
	return []admin.Size{
		{Name: "Rules in memory", Of: "origins", Entries: int64(rules.Entries), Bytes: rules.Bytes, Bound: rules.Bound},
		{Name: "Remembered tags", Of: "URLs", Entries: int64(tags.Entries), Bytes: tags.Bytes, Bound: tags.Bound},
		g.store.size(),
	}
}
