package datadir

import (
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

// Gates are the gates that have written audit logs.
type Gates struct {
	Keys     *evidence.Keys   // of their logs, and of the witnesses that they name
	KeyTexts []string         // the verifier keys of the logs
	Known    []evidence.Known // checkpoints that they keep

	configs []*gate.Config
}

// ReadGates reads what verifies the logs of gates with these configurations.
func ReadGates(configs []*gate.Config) (*Gates, error) {
	g := &Gates{configs: configs}
	var witnesses []string
	for _, c := range configs {
		signer, err := Signer(c)
		if err != nil {
			return nil, err
		}
		known, err := Checkpoints(c)
		if err != nil {
			return nil, err
		}
		g.Known, g.KeyTexts = append(g.Known, known...), append(g.KeyTexts, signer.Key())
		for _, w := range c.Log.Audit.Witnesses {
			witnesses = append(witnesses, w.Key)
		}
	}
	var err error
	g.Keys, err = evidence.ParseKeys(g.KeyTexts, witnesses)
	return g, err
}

// Open opens the evidence of the gates. The caller closes each.
func (g *Gates) Open() (all []Evidence, err error) {
	for _, c := range g.configs {
		archive, dir, err := Snapshots(c)
		if err != nil {
			for _, e := range all {
				e.Close()
			}
			return nil, err
		}
		all = append(all, Evidence{Archive: archive, Dir: dir})
	}
	return all, nil
}
