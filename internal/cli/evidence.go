package cli

import (
	"fmt"

	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
)

// Evidence shows outsiders what the gate has done.
type Evidence struct {
	Key    EvidenceKey    `cmd:"" help:"Print the verifier key of the gate's audit log, to publish."`
	Bundle EvidenceBundle `cmd:"" help:"Make a zip file of records that anyone can check, with their proofs and their evidence."`
	Check  EvidenceCheck  `cmd:"" help:"Check a bundle: signatures, proofs, hashes, and each decision."`
	Proof  EvidenceProof  `cmd:"" help:"Print the proof that one record is in its log."`
}

// EvidenceKey prints the verifier key.
type EvidenceKey struct {
	Configured
}

// Run prints the key.
func (k *EvidenceKey) Run(s console.Streams) error {
	c, err := k.load()
	if err != nil {
		return err
	}
	signer, err := datadir.Signer(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, signer.Key())
	return err
}
