package evidence

import (
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// A Tree is the leaves From to Size of a Merkle tree (RFC 6962, 2.1), as the hashes of their complete subtrees from
// left to right. From leaf 0 on these are enough to append to the tree and to compute its root. From a later one they
// are what a proof needs that the tree has grown from there.
type Tree struct {
	From   int64       `json:"from"`
	Size   int64       `json:"size"`
	Hashes []tlog.Hash `json:"hashes"`
}

// valid reports whether the tree has one hash for each complete subtree. Every method expects that.
func (t *Tree) valid() bool {
	return 0 <= t.From && t.From <= t.Size && len(t.subtrees()) == len(t.Hashes)
}

// subtrees returns the places of the complete subtrees, as [tlog.StoredHashIndex].
func (t *Tree) subtrees() (indexes []int64) {
	for at := t.From; at < t.Size; {
		// The largest subtree that may begin here, and does not end behind the last leaf.
		level := bits.Len64(uint64(t.Size-at)) - 1
		if at > 0 {
			level = min(level, bits.TrailingZeros64(uint64(at)))
		}
		indexes = append(indexes, tlog.StoredHashIndex(level, at>>level))
		at += 1 << level
	}
	return indexes
}

// Append adds a leaf.
func (t *Tree) Append(leaf tlog.Hash) { t.append(leaf, nil) }

// append adds a leaf, and calls completed, unless it is nil, for each subtree that is complete with it.
func (t *Tree) append(leaf tlog.Hash, completed func(index int64, hash tlog.Hash)) {
	t.Hashes = append(t.Hashes, leaf)
	t.Size++
	for level := 1; t.Size&(1<<level-1) == 0 && t.Size-1<<level >= t.From; level++ {
		n := len(t.Hashes)
		hash := tlog.NodeHash(t.Hashes[n-2], t.Hashes[n-1])
		t.Hashes = append(t.Hashes[:n-2], hash)
		if completed != nil {
			completed(tlog.StoredHashIndex(level, t.Size>>level-1), hash)
		}
	}
}

// Root returns the hash of a tree that begins with leaf 0.
func (t *Tree) Root() tlog.Hash {
	root, err := tlog.TreeHash(t.Size, tlog.HashReaderFunc(func([]int64) ([]tlog.Hash, error) { return t.Hashes, nil }))
	if err != nil {
		panic(err) // the tree is not valid
	}
	return root
}

// Clone returns a copy. Its Hashes are not nil.
func (t *Tree) Clone() *Tree {
	return &Tree{t.From, t.Size, append([]tlog.Hash{}, t.Hashes...)}
}

// A growth is a tree that a log had, and the leaves that it has got since.
type growth struct {
	Tree  *Tree `json:"tree"`
	Since *Tree `json:"since"`
}

// valid reports whether the log has grown to a size.
func (g growth) valid(size int64) bool {
	return g.Tree != nil && g.Since != nil && g.Tree.From == 0 && g.Tree.valid() && g.Since.From == g.Tree.Size && g.Since.Size == size && g.Since.valid()
}

// prove returns the proof that the log has grown (RFC 6962, 2.1.2). It is empty if the tree had no leaf, or has got none.
func (g growth) prove() ([]tlog.Hash, error) {
	if g.Tree.Size == 0 || g.Tree.Size == g.Since.Size {
		return nil, nil
	}
	indexes, hashes := append(g.Tree.subtrees(), g.Since.subtrees()...), append(slices.Clone(g.Tree.Hashes), g.Since.Hashes...)
	return tlog.ProveTree(g.Since.Size, g.Tree.Size, tlog.HashReaderFunc(func(wanted []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(wanted))
		for i, index := range wanted {
			at := slices.Index(indexes, index)
			if at < 0 {
				return nil, fmt.Errorf("hash %d is not known", index)
			}
			found[i] = hashes[at]
		}
		return found, nil
	}))
}
