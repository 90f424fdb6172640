package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/internal/audit"
	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
	"robotsgate/policy"
)

// CheckOptions say what a bundle is checked with.
type CheckOptions struct {
	Keys      []string // verifier keys of logs; none: those that the bundle names
	Witnesses []string // verifier keys of witnesses that must have cosigned
	Parse     func(configuration []byte) (*policy.Config, error)
	Progress  func() // is called for each entry; nil: not at all
}

// Checked is what the check of a bundle has found.
type Checked struct {
	Entries    int            `json:"records"`
	Proven     int            `json:"proven"`
	Alike      int            `json:"alike"`       // decided again as recorded
	NoDecision int            `json:"no_decision"` // that were refused before a decision
	Missing    map[string]int `json:"missing"`     // entries without their evidence, by kind
	audit.Span
	Logs       []CheckedLog   `json:"logs"`
	SignedBy   []string       `json:"signed_by"`   // verifier keys
	KeyGiven   bool           `json:"key_given"`   // else SignedBy is from the bundle, and proves nothing by itself
	Cosigned   []string       `json:"cosigned_by"` // witnesses that have cosigned all checkpoints, verified
	Unverified []string       `json:"cosignatures_unverified"`
	Findings   []Finding      `json:"findings"` // the first of each kind
	Found      int            `json:"findings_total"`
	Kinds      map[string]int `json:"findings_by_kind"`
}

// A CheckedLog is the checkpoint of a log in a bundle.
type CheckedLog struct {
	Name     string `json:"log"`
	Size     int64  `json:"size"`
	Entries  int    `json:"records"` // proven ones in the bundle
	First    int64  `json:"first"`   // index of the first
	Last     int64  `json:"last"`
	root     tlog.Hash
	cosigned []int
}

// A Finding is something that is wrong with a bundle, or missing.
type Finding struct {
	Kind string `json:"kind"`
	At   string `json:"at"` // file and line
	Text string `json:"text"`
}

// maxFindings bounds the findings of one kind that are kept.
const maxFindings = 20

// checker checks one bundle.
type checker struct {
	*archive
	Checked
	o     CheckOptions
	keys  *evidence.Keys
	logs  map[string]*CheckedLog
	seen  map[pick]bool // proven entries
	place map[string]int
}

// The kinds of findings, besides the outcomes of a replay.
const (
	badFile       = "file"
	badCheckpoint = "checkpoint"
	badProof      = "proof"
	badEntry      = "record"
	badWitness    = "witness"
)

// Check checks a bundle of a size. An error says that it is no bundle, or that a key can't be used.
func Check(r io.ReaderAt, size int64, o CheckOptions) (*Checked, error) {
	a, err := open(r, size)
	if err != nil {
		return nil, err
	}
	c := &checker{archive: a, o: o, logs: map[string]*CheckedLog{}, seen: map[pick]bool{}, place: map[string]int{}}
	c.Missing, c.Logs, c.SignedBy, c.Cosigned, c.Unverified, c.Findings, c.Kinds = map[string]int{}, []CheckedLog{}, []string{}, []string{}, []string{}, []Finding{}, map[string]int{}
	for _, step := range []func() error{c.readKeys, c.checkpoints, c.contents, c.history, c.entries, c.end} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &c.Checked, nil
}

// OK reports whether all entries are proven and decided alike.
func (c *Checked) OK() bool { return c.Found == 0 }

// More returns the kinds of findings of which more were found than are listed, with their numbers.
func (c *Checked) More() (all []string) {
	for kind, n := range c.Kinds {
		if n > maxFindings {
			all = append(all, fmt.Sprintf("%s: %d more", kind, n-maxFindings))
		}
	}
	slices.Sort(all)
	return all
}

func (c *checker) find(kind, at, format string, args ...any) {
	c.Found++
	if c.Kinds[kind]++; c.Kinds[kind] <= maxFindings {
		c.Findings = append(c.Findings, Finding{kind, at, escape.Printable(fmt.Sprintf(format, args...))})
	}
}

// keyInText matches what may be a verifier key.
var keyInText = regexp.MustCompile(`[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]{40,60}=*`)

// readKeys parses the keys that were given, or finds those that the bundle names.
func (c *checker) readKeys() (err error) {
	keys := c.o.Keys
	if c.KeyGiven = len(keys) > 0; !c.KeyGiven {
		text, err := c.read(readmeName)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, key := range keyInText.FindAllString(string(text), maxLogs) {
			if _, err := note.NewVerifier(key); err == nil && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	c.keys, err = evidence.ParseKeys(keys, c.o.Witnesses)
	return err
}

// checkpoints verifies the signatures.
func (c *checker) checkpoints() error {
	names := c.names(checkpointsDir)
	if len(names) > maxLogs {
		return noBundle("more than %d checkpoints", maxLogs)
	}
	if len(names) == 0 {
		c.find(badCheckpoint, checkpointsDir, "there is no checkpoint in the bundle, so that nothing is proven")
	}
	for _, name := range names {
		text, err := c.read(name)
		if err != nil {
			return err
		}
		c.checkpoint(name, text)
	}
	return nil
}

func (c *checker) checkpoint(name string, text []byte) {
	p, n, err := c.keys.Open(text)
	origin := evidence.Origin(string(text))
	key, known := c.keys.Log(origin)
	switch {
	case err != nil && !known && c.KeyGiven:
		c.find(badCheckpoint, name, "log %q: none of the given keys is for it", origin)
		return
	case err != nil && !known:
		c.find(badCheckpoint, name, "log %q: %s names no key for it: give it with --key", origin, readmeName)
		return
	case err != nil:
		c.find(badCheckpoint, name, "log %q: the checkpoint is not signed by its key: %v", origin, err)
		return
	case p.N > maxTree:
		c.find(badCheckpoint, name, "log %q: a tree of %d records", origin, p.N)
		return
	case c.logs[origin] != nil:
		c.find(badCheckpoint, name, "log %q: there are two checkpoints of it", origin)
		return
	}
	c.place[origin] = len(c.place)
	c.logs[origin] = &CheckedLog{Name: origin, Size: p.N, root: p.Hash, cosigned: c.keys.Cosigned(n)}
	if !slices.Contains(c.SignedBy, key) {
		c.SignedBy = append(c.SignedBy, key)
	}
	for i, witness := range c.keys.Witnesses() {
		if !slices.Contains(c.logs[origin].cosigned, i) {
			c.find(badWitness, name, "log %q: witness %s has not cosigned its checkpoint", origin, witness)
		}
	}
	for _, s := range n.UnverifiedSigs {
		if !slices.Contains(c.Unverified, s.Name) {
			c.Unverified = append(c.Unverified, s.Name)
		}
	}
}

// contents checks that files have the hashes in their names, that there are all files, and that those which only people
// read can be read.
func (c *checker) contents() error {
	for _, name := range []string{readmeName, reportName, proofsName, answersName} {
		if c.files[name] == nil {
			c.find(badFile, name, "it is missing")
		}
	}
	for _, name := range []string{readmeName, reportName} {
		if err := c.readThrough(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, folder := range []string{robotsDir, configurationsDir} {
		for _, name := range c.names(folder) {
			_, err := c.named(folder, strings.TrimPrefix(name, folder))
			if _, bad := errors.AsType[NoBundleError](err); bad {
				return err
			}
			if err != nil {
				c.find(badFile, name, "its contents do not have this SHA-256: they were changed")
			}
		}
	}
	return nil
}

// readThrough reports whether a member can be read.
func (c *checker) readThrough(name string) error {
	r, err := c.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// history reads the answers of the origins.
func (c *checker) history() error {
	err := c.loadAnswers(func(at string, err error) { c.find(badFile, at, "no answer: %v", err) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil // contents has reported it
	}
	return err
}

// end sums up.
func (c *checker) end() error {
	if c.Entries == 0 {
		c.find(badEntry, recordsName, "there is no record in the bundle")
	}
	for _, l := range c.logs {
		c.Logs = append(c.Logs, *l)
	}
	slices.SortFunc(c.Logs, func(a, b CheckedLog) int { return strings.Compare(a.Name, b.Name) })
	for i, witness := range c.keys.Witnesses() {
		all := len(c.Logs) > 0
		for _, l := range c.Logs {
			all = all && slices.Contains(l.cosigned, i)
		}
		if all {
			c.Cosigned = append(c.Cosigned, witness)
		}
	}
	return nil
}
