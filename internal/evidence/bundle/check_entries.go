package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
	"robotsgate/internal/replay"
	"robotsgate/policy"
)

// entries checks each entry with its proof, the line of proofs.jsonl with the same number.
func (c *checker) entries() error {
	replayer := replay.New(c.archive, func(text []byte) (*policy.Config, error) {
		config, err := c.o.Parse(text)
		if err != nil {
			err = errors.New(escape.Short(err.Error())) // it may list thousands of mistakes
		}
		return config, err
	})
	records, err := c.open(recordsName)
	if err != nil {
		return err
	}
	defer records.Close()
	proofs, err := c.open(proofsName)
	if errors.Is(err, fs.ErrNotExist) {
		proofs, err = io.NopCloser(strings.NewReader("")), nil // contents has reported it
	}
	if err != nil {
		return err
	}
	defer proofs.Close()
	next, stop := iter.Pull2(linesOf(proofsName, proofs))
	defer stop()
	for line, err := range linesOf(recordsName, records) {
		if err != nil {
			return err
		}
		proof, err, _ := next()
		if err != nil {
			return err
		}
		if err := c.entry(line, proof.Text, replayer); err != nil {
			return err
		}
	}
	if _, _, more := next(); more {
		c.find(badProof, proofsName, "there are more proofs than records")
	}
	return nil
}

// entry checks an entry with its proof, which is empty if there is none.
func (c *checker) entry(line evidence.Text, proof []byte, replayer *replay.Replayer) error {
	if c.Entries++; c.Entries > maxEntries {
		return noBundle("%s has more than %d records", recordsName, maxEntries)
	}
	if c.o.Progress != nil {
		c.o.Progress()
	}
	at := fmt.Sprintf("%s:%d", recordsName, line.Number)
	r, err := parseEntry(line.Text)
	if err != nil {
		c.find(badEntry, at, "%v", err)
		return nil
	}
	if err := c.prove(r, line.Text, proof); err != nil {
		c.find(badProof, at, "not proven: %v", err)
	} else {
		c.Proven++
	}
	c.Include(r.Time)
	c.decide(at, r, replayer)
	if c.work > maxWork {
		return noBundle("the decisions take more than %d GiB of files to be read", maxWork>>30)
	}
	return nil
}

// parseEntry parses a line of records.jsonl.
func parseEntry(text []byte) (*audit.Entry, error) {
	r := &audit.Entry{}
	if err := json.Unmarshal(text, r); err != nil || r.Time.IsZero() {
		return nil, errors.New("not a record of a request")
	}
	if name := repeated(json.NewDecoder(bytes.NewReader(text))); name != "" {
		return nil, fmt.Errorf("it has the member %q twice, so that readers differ about its value", name)
	}
	return r, nil
}

// repeated returns the name of a member that an object in valid JSON has twice, in any letter case, in capitals:
// encoding/json takes the last of them, and other readers another (RFC 8259, 4).
func repeated(d *json.Decoder) string {
	token, err := d.Token()
	if err != nil {
		return ""
	}
	seen := map[string]bool{}
	for token == json.Delim('{') && d.More() {
		name, _ := d.Token()
		folded := strings.ToUpper(strings.ToLower(name.(string))) // as encoding/json, which takes ſ for s
		if seen[folded] {
			return folded
		}
		seen[folded] = true
		if inner := repeated(d); inner != "" {
			return inner
		}
	}
	for token == json.Delim('[') && d.More() {
		if inner := repeated(d); inner != "" {
			return inner
		}
	}
	if token == json.Delim('{') || token == json.Delim('[') {
		_, _ = d.Token() // its end
	}
	return ""
}

// prove checks that an entry is in the tree of its log.
func (c *checker) prove(r *audit.Entry, leaf, proofLine []byte) error {
	var p proof
	if len(proofLine) == 0 {
		return errors.New("there is no proof for this record")
	}
	if err := json.Unmarshal(proofLine, &p); err != nil {
		return fmt.Errorf("its line of %s is no proof: %w", proofsName, err)
	}
	log := c.logs[p.Log]
	if log == nil {
		return fmt.Errorf("log %q has no checkpoint here that is signed by its key", p.Log)
	}
	if err := tlog.CheckRecord(p.Proof, log.Size, log.root, p.Index, tlog.RecordHash(leaf)); err != nil {
		return fmt.Errorf("record %d of log %q is another: this one was changed or added", p.Index, p.Log)
	}
	if r.Index == nil || *r.Index != p.Index {
		return fmt.Errorf("it is record %d of log %q, but states another index", p.Index, p.Log)
	}
	at := pick{c.place[p.Log], p.Index}
	if c.seen[at] {
		return fmt.Errorf("record %d of log %q is here twice", p.Index, p.Log)
	}
	c.seen[at] = true
	if log.Entries == 0 {
		log.First, log.Last = p.Index, p.Index
	}
	log.First, log.Last = min(log.First, p.Index), max(log.Last, p.Index)
	log.Entries++
	return nil
}

// decide decides an entry again.
func (c *checker) decide(at string, r *audit.Entry, replayer *replay.Replayer) {
	outcome, why := replayer.Replay(r)
	switch {
	case outcome == replay.Same:
		c.Alike++
	case outcome == replay.NoDecision:
		c.NoDecision++
	default:
		if outcome.Gone() {
			c.Missing[outcome.Key()]++
		}
		c.find(outcome.Key(), at, "%s: %s", r.ID, why)
	}
}
