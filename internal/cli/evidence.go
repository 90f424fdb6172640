package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
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
	signer, err := logSigner(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, signer.Key())
	return err
}

// logSigner returns the signer of the audit log of a configuration.
func logSigner(c *gate.Config) (*evidence.Signer, error) {
	dir, err := gate.DataDir(c)
	if err != nil {
		return nil, err
	}
	signer, err := gate.LogSigner(c, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data_dir %s has no key of an audit log yet: the gate makes it at its first start with log.audit; or set log.audit_key_file and log.audit_name", dir)
	}
	return signer, err
}
