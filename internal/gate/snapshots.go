package gate

import (
	"context"
	"errors"
	"log/slog"

	"robotsgate/internal/admin"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
)

// A snapshotStore is a store with figures for the metrics and the status page.
type snapshotStore interface {
	snapshot.Store
	Usage() store.Usage
}

// A diskStore is one that keeps snapshots beyond the life of the process, and past answers as evidence.
type diskStore interface {
	snapshotStore
	Archive
}

// openStore opens the snapshots on disk, or in memory if another gate uses the folder.
func (g *Gate) openStore(dir string) error {
	disk, err := store.Open(dir, g.config.Robots.Limits, g.log)
	switch {
	case errors.Is(err, store.ErrInUse):
		level := slog.LevelWarn
		if g.options.File == nil { // a gate that ends with its command
			level = slog.LevelInfo
		}
		g.log.Log(context.Background(), level, "another gate uses this data_dir: this one keeps its snapshots and the robots tags that it remembers in memory", "data_dir", dir)
		g.store = store.NewMemory(int64(g.config.Robots.CacheBytes))
		return nil
	case err != nil:
		return err
	}
	g.store, g.disk = disk, disk
	return nil
}

// ReadSnapshots opens the snapshots in a data_dir, also while a gate uses it. The error is fs.ErrNotExist if there are
// none.
func ReadSnapshots(c *Config, dir string) (Archive, error) { return store.Read(dir, c.Robots.Keep) }

// An Archive has to be closed.
type Archive interface {
	snapshot.Archive
	Close() error
}

// history returns an origin's past answers.
func (g *Gate) history(origin string) (all []admin.Past, err error) {
	answers, err := g.disk.History(origin)
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
	rules, tags, kept, name := engine.Snapshots().Cached(), g.remembered.Size(), g.store.Usage(), "Snapshots in memory"
	if g.disk != nil {
		name = "Snapshots on disk"
	}
	return []admin.Size{
		{Name: "Rules in memory", Of: "origins", Entries: int64(rules.Entries), Bytes: rules.Bytes, Bound: rules.Bound},
		{Name: "Remembered tags", Of: "URLs", Entries: int64(tags.Entries), Bytes: tags.Bytes, Bound: tags.Bound},
		{Name: name, Of: "origins", Entries: kept.Origins, Bytes: kept.Bytes, Bound: kept.Bound},
	}
}
