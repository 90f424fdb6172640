package evidence

import (
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// A Tree is a Merkle tree (RFC 6962, 2.1), as the hashes of its complete subtrees from left to right. They are enough
// to append to the tree and to compute its root.
type Tree struct {
	Size   int64       `json:"size"`
	Hashes []tlog.Hash `json:"hashes"`
}

// valid reports whether the tree has one hash for each complete subtree. Every method expects that.
func (t *Tree) valid() bool { return t.Size >= 0 && bits.OnesCount64(uint64(t.Size)) == len(t.Hashes) }

// Append adds a leaf.
func (t *Tree) Append(leaf tlog.Hash) {
	t.Hashes = append(t.Hashes, leaf)
	t.Size++
	for level := 1; t.Size&(1<<level-1) == 0; level++ {
		n := len(t.Hashes)
		t.Hashes = append(t.Hashes[:n-2], tlog.NodeHash(t.Hashes[n-2], t.Hashes[n-1]))
	}
}

// Root returns the hash of the tree.
func (t *Tree) Root() tlog.Hash {
	root, err := tlog.TreeHash(t.Size, tlog.HashReaderFunc(func([]int64) ([]tlog.Hash, error) { return t.Hashes, nil }))
	if err != nil {
		panic(err) // the tree is not valid
	}
	return root
}
