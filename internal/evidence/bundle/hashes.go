package bundle

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

// A hashFile has the hashes of all nodes that the verifier has computed, in a temporary file: which of them proofs need
// is known at the end only.
type hashFile struct {
	file *os.File
	w    *bufio.Writer
}

// hashEntry is the size of an entry: number of the log, [tlog.StoredHashIndex] of the node, and hash.
const hashEntry = 4 + 8 + tlog.HashSize

func newHashFile(dir string) (*hashFile, error) {
	f, err := os.CreateTemp(dir, "hashes-*")
	if err != nil {
		return nil, err
	}
	return &hashFile{f, bufio.NewWriterSize(f, 1<<20)}, nil
}

func (f *hashFile) add(log int, index int64, h tlog.Hash) {
	var b [hashEntry]byte
	binary.LittleEndian.PutUint32(b[:], uint32(log))
	binary.LittleEndian.PutUint64(b[4:], uint64(index))
	copy(b[12:], h[:])
	_, _ = f.w.Write(b[:]) // Flush returns the error
}

// fill sets the nodes that are wanted, by the number of their log.
func (f *hashFile) fill(wanted []nodes) error {
	if err := f.w.Flush(); err != nil {
		return err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(f.file, 1<<20)
	for {
		var b [hashEntry]byte
		if _, err := io.ReadFull(r, b[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		n, index := wanted[binary.LittleEndian.Uint32(b[:])], int64(binary.LittleEndian.Uint64(b[4:]))
		if _, ok := n[index]; ok {
			n[index] = tlog.Hash(b[12:])
		}
	}
}

// nodes are nodes of a tree.
type nodes map[int64]tlog.Hash

// want adds the nodes that the proof of a leaf needs in a tree of this size.
func (n nodes) want(size, leaf int64) error {
	_, err := tlog.ProveRecord(size, leaf, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		for _, index := range indexes {
			n[index] = tlog.Hash{}
		}
		return make([]tlog.Hash, len(indexes)), nil
	}))
	return err
}

// ReadHashes returns the nodes with these indexes.
func (n nodes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = n[index]
	}
	return hashes, nil
}
