package evidence

import (
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// A Tree is the leaves from some index on of a Merkle tree (RFC 6962, 2.1), as the hashes of their complete
// subtrees. From index 0 on these are enough to append to the tree and to compute its root. From a later one
// they are what a proof needs that the tree has grown from there.
type Tree struct {
	from, size int64
	nodes      []node // from left to right
}

// A node is a complete subtree of 2^level leaves.
type node struct {
	level int
	hash  tlog.Hash
}

// NewTree returns the tree with a size and its edge: the hashes of its complete subtrees.
func NewTree(size int64, edge []tlog.Hash) (*Tree, error) { return newTree(0, size, edge) }

// newTree returns the tree that begins with leaf from, of which nodes are the complete subtrees.
func newTree(from, size int64, nodes []tlog.Hash) (*Tree, error) {
	t := &Tree{from: from, size: size}
	for at := from; 0 <= at && at < size; {
		// The largest subtree that may begin here, and does not end behind size.
		level := bits.Len64(uint64(size-at)) - 1
		if at > 0 {
			level = min(level, bits.TrailingZeros64(uint64(at)))
		}
		n := len(t.nodes)
		if n == len(nodes) {
			break
		}
		t.nodes = append(t.nodes, node{level, nodes[n]})
		at += 1 << level
	}
	if t.end() != size || len(t.nodes) != len(nodes) {
		return nil, fmt.Errorf("the leaves %d to %d are not %d complete subtrees", from, size, len(nodes))
	}
	return t, nil
}

// end returns the index behind the last leaf, as the nodes have it.
func (t *Tree) end() int64 {
	at := t.from
	for _, n := range t.nodes {
		at += 1 << n.level
	}
	return at
}

// Append adds a leaf.
func (t *Tree) Append(leaf tlog.Hash) {
	t.size++
	t.nodes = append(t.nodes, node{0, leaf})
	for n := len(t.nodes); n > 1; n-- {
		left, right := t.nodes[n-2], t.nodes[n-1]
		if left.level != right.level || t.size>>right.level&1 != 0 { // not the two halves of a subtree
			return
		}
		t.nodes = append(t.nodes[:n-2], node{right.level + 1, tlog.NodeHash(left.hash, right.hash)})
	}
}

// Size returns the number of leaves, with those before the first.
func (t *Tree) Size() int64 { return t.size }

// Edge returns the hashes of the complete subtrees, from left to right. It is not nil.
func (t *Tree) Edge() []tlog.Hash {
	edge := make([]tlog.Hash, len(t.nodes))
	for i, n := range t.nodes {
		edge[i] = n.hash
	}
	return edge
}

// Root returns the hash of a tree that begins with leaf 0.
func (t *Tree) Root() tlog.Hash {
	root, err := tlog.TreeHash(t.size, tlog.HashReaderFunc(func([]int64) ([]tlog.Hash, error) { return t.Edge(), nil }))
	if err != nil {
		panic(err) // the reader has no error
	}
	return root
}

// Clone returns a copy.
func (t *Tree) Clone() *Tree {
	return &Tree{t.from, t.size, slices.Clone(t.nodes)}
}

// Since returns a tree that has no leaves yet, and begins behind those of t.
func (t *Tree) Since() *Tree { return &Tree{from: t.size, size: t.size} }

// ProveGrowth returns the proof that the tree of since, which begins where old ends, has grown from old
// (RFC 6962, 2.1.2). It is empty if old has no leaf, or since none.
func ProveGrowth(old, since *Tree) ([]tlog.Hash, error) {
	if old.size == 0 || old.size == since.size {
		return nil, nil
	}
	known := map[int64]tlog.Hash{}
	for _, t := range []*Tree{old, since} {
		at := t.from
		for _, n := range t.nodes {
			known[tlog.StoredHashIndex(n.level, at>>n.level)] = n.hash
			at += 1 << n.level
		}
	}
	return tlog.ProveTree(since.size, old.size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			hash, ok := known[index]
			if !ok {
				return nil, fmt.Errorf("hash %d is not known", index)
			}
			hashes[i] = hash
		}
		return hashes, nil
	}))
}
