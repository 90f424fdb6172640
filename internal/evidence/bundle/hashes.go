package bundle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

// A hashFile has the hashes of all leaves that were read, and of the edges that they continue, in a
// temporary file: which of them proofs need is known at the end only.
type hashFile struct {
	file *os.File
	w    *bufio.Writer
}

// hashEntry is the size of an entry: number of the log, index in the tree's storage, and hash. The index of a
// leaf is its number, that of another node ^index.
const hashEntry = 4 + 8 + tlog.HashSize

func newHashFile(dir string) (*hashFile, error) {
	f, err := os.CreateTemp(dir, "hashes-*")
	if err != nil {
		return nil, err
	}
	return &hashFile{f, bufio.NewWriterSize(f, 1<<20)}, nil
}

func (f *hashFile) leaf(log int, number int64, h tlog.Hash) { f.add(log, number, h) }

func (f *hashFile) edge(log int, index int64, h tlog.Hash) { f.add(log, ^index, h) }

func (f *hashFile) add(log int, index int64, h tlog.Hash) {
	var b [hashEntry]byte
	binary.LittleEndian.PutUint32(b[:], uint32(log))
	binary.LittleEndian.PutUint64(b[4:], uint64(index))
	copy(b[12:], h[:])
	_, _ = f.w.Write(b[:]) // Flush returns the error
}

// fill computes the nodes of trees, and keeps those that are wanted.
func (f *hashFile) fill(trees []wantedTree) error {
	if err := f.w.Flush(); err != nil {
		return err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(f.file, 1<<20)
	for {
		var b [hashEntry]byte
		_, err := io.ReadFull(r, b[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		t := &trees[binary.LittleEndian.Uint32(b[:])]
		if len(t.wanted) == 0 {
			continue
		}
		index := int64(binary.LittleEndian.Uint64(b[4:]))
		h := tlog.Hash(b[12:])
		if index < 0 {
			t.add(^index, h)
			continue
		}
		if err := t.append(index, h); err != nil {
			return err
		}
	}
}

// A wantedTree computes the nodes of one log's tree, of which it keeps those that proofs need. Indexes are
// those of [tlog.StoredHashIndex].
type wantedTree struct {
	wanted nodes
	edge   nodes // the complete subtrees so far
}

type nodes map[int64]tlog.Hash

var errNoNode = errors.New("the log lacks records that the proof needs")

// ReadHashes returns the nodes with these indexes.
func (n nodes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		h, ok := n[index]
		if !ok {
			return nil, fmt.Errorf("%w (node %d)", errNoNode, index)
		}
		hashes[i] = h
	}
	return hashes, nil
}

// want adds the nodes that the proof of a leaf needs in a tree of this size.
func (t *wantedTree) want(size, leaf int64) error {
	if t.wanted == nil {
		t.wanted, t.edge = nodes{}, nodes{}
	}
	_, err := tlog.ProveRecord(size, leaf, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		for _, index := range indexes {
			t.wanted[index] = tlog.Hash{}
		}
		return make([]tlog.Hash, len(indexes)), nil
	}))
	return err
}

func (t *wantedTree) keep(index int64, h tlog.Hash) {
	if _, ok := t.wanted[index]; ok {
		t.wanted[index] = h
	}
}

// add adds a complete subtree.
func (t *wantedTree) add(index int64, h tlog.Hash) {
	t.edge[index] = h
	t.keep(index, h)
}

// append adds a leaf, and the subtrees that it completes.
func (t *wantedTree) append(number int64, h tlog.Hash) error {
	hashes, err := tlog.StoredHashesForRecordHash(number, h, t.edge)
	if err != nil {
		return err
	}
	index := tlog.StoredHashIndex(0, number)
	for level, h := range hashes {
		t.keep(index+int64(level), h)
		if level > 0 { // its left half is not needed again
			delete(t.edge, tlog.StoredHashIndex(level-1, number>>(level-1)-1))
		}
	}
	top := len(hashes) - 1
	t.edge[index+int64(top)] = hashes[top]
	return nil
}
