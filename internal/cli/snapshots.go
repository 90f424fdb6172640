package cli

import (
	"errors"
	"log/slog"

	"robotsgate/internal/admin"
	"robotsgate/internal/config"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// snapshots is the gate's store, with the figures that metrics, status page and API show.
type snapshots struct {
	policy.Store
	usage func() store.Usage
	disk  *store.Disk // nil: they are in memory, since another gate uses the folder
}

// openStore returns the snapshots on disk, or in memory if another gate uses the folder.
func openStore(c *config.Config, dir string, log *slog.Logger) (snapshots, error) {
	d, err := store.Open(dir, keeping(c.Robots), log)
	if errors.Is(err, store.ErrInUse) {
		log.Warn("another gate uses this data_dir: this one keeps its snapshots in memory", "data_dir", dir)
		m := store.NewMemory(int64(c.Robots.CacheBytes))
		return snapshots{Store: m, usage: m.Usage}, nil
	}
	if err != nil {
		return snapshots{}, err
	}
	return snapshots{Store: d, usage: d.Usage, disk: d}, nil
}

func (s *snapshots) close() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.Close()
}

// history returns a function for an origin's past answers, nil if none are kept.
func (s *snapshots) history() func(origin string) ([]admin.Past, error) {
	if s.disk == nil {
		return nil
	}
	return func(origin string) (all []admin.Past, err error) {
		answers, err := s.disk.History(origin)
		for _, a := range answers {
			p := admin.Past{From: a.From.UTC(), Crawlers: a.Crawlers, Token: a.Token, Status: a.Snapshot.Status, SHA256: a.Snapshot.SHA256, Error: a.Snapshot.Error, Bytes: s.disk.Length(a.Snapshot.SHA256)}
			if !a.To.IsZero() {
				p.To = a.To.UTC()
			}
			all = append(all, p)
		}
		return all, err
	}
}

// size returns the size of the store, for the status page.
func (s *snapshots) size() admin.Size {
	name := "Snapshots in memory"
	if s.disk != nil {
		name = "Snapshots on disk"
	}
	u := s.usage()
	return admin.Size{Name: name, Of: "origins", Entries: u.Origins, Bytes: u.Bytes, Bound: u.Bound}
}
