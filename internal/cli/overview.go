package cli

import (
	"robotsgate/internal/admin"
	"robotsgate/internal/store"
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
	a.History = pastOf(g.store)
	a.Sizes = func() []admin.Size { return g.sizes(engine) }
}

func (g *gate) sizes(engine *policy.Engine) []admin.Size {
	rules, tags := engine.Cached(), g.remembered.Size()
	sizes := []admin.Size{
		{Name: "Rules in memory", Of: "origins", Entries: int64(rules.Entries), Bytes: rules.Bytes, Bound: rules.Bound},
		{Name: "Remembered tags", Of: "URLs", Entries: int64(tags.Entries), Bytes: tags.Bytes, Bound: tags.Bound},
	}
	name := "Snapshots in memory"
	if _, ok := g.store.(*store.Disk); ok {
		name = "Snapshots on disk"
	}
	if s, ok := g.store.(interface{ Usage() store.Usage }); ok {
		u := s.Usage()
		sizes = append(sizes, admin.Size{Name: name, Of: "origins", Entries: u.Origins, Bytes: u.Bytes, Bound: u.Bound})
	}
	return sizes
}
