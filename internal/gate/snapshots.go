package gate

import (
	"context"
	"log/slog"

	"robotsgate/internal/admin"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// openStore opens the snapshots, and makes this gate the owner of the other files in data_dir unless another gate is.
func (g *Gate) openStore(dir string) (err error) {
	if g.release, err = store.Own(dir); err != nil {
		return err
	}
	if !g.owner() {
		level := slog.LevelWarn
		if g.options.File == nil { // a gate that ends with its command
			level = slog.LevelInfo
		}
		g.log.Log(context.Background(), level, "another gate uses this data_dir: this one keeps the robots tags that it remembers, and what budgets count, in memory", "data_dir", dir)
	}
	g.store, err = store.Open(dir, g.config.Robots.Limits, g.log)
	return err
}

// owner reports whether this gate is the first one in its data_dir.
func (g *Gate) owner() bool { return g.release != nil }

// history returns an origin's past answers.
func (g *Gate) history(origin string) (all []admin.Past, err error) {
	answers, err := g.store.History(origin)
	for _, a := range answers {
		s := a.Snapshot
		all = append(all, admin.Past{
			From: a.From.UTC(), To: a.To.UTC(), Asker: a.Asker,
			Status: s.Status, SHA256: s.SHA256, Error: s.Error, Bytes: a.Bytes,
		})
	}
	return all, err
}

// sizes returns the sizes of the caches and the store, for the status page.
func (g *Gate) sizes(engine *policy.Engine) []admin.Size {
	rules, tags, kept := engine.Snapshots().Cached(), g.remembered.Size(), g.store.Usage()
	return []admin.Size{
		{Name: "Rules in memory", Of: "origins", Entries: int64(rules.Entries), Bytes: rules.Bytes, Bound: rules.Bound},
		{Name: "Remembered tags", Of: "URLs", Entries: int64(tags.Entries), Bytes: tags.Bytes, Bound: tags.Bound},
		{Name: "Snapshots on disk", Of: "origins", Entries: kept.Origins, Bytes: kept.Bytes, Bound: kept.Bound},
	}
}
