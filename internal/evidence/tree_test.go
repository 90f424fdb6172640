package evidence

import (
	"fmt"
	"slices"
	"testing"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

func leaf(i int64) tlog.Hash { return tlog.RecordHash(fmt.Appendf(nil, "leaf %d", i)) }

// stored returns a tree of n leaves as package tlog keeps it.
func stored(t *testing.T, n int64) tlog.HashReaderFunc {
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (all []tlog.Hash, err error) {
		for _, i := range indexes {
			all = append(all, hashes[i])
		}
		return all, nil
	})
	for i := range n {
		more, err := tlog.StoredHashesForRecordHash(i, leaf(i), reader)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, more...)
	}
	return reader
}

// TestTree: roots and edges are those of package tlog, also of a tree that goes on from an edge.
func TestTree(t *testing.T) {
	const most = 130
	reader := stored(t, most)
	tree := &Tree{}
	for n := range int64(most) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Root(); got != want || tree.Size != n || !tree.valid() {
			t.Fatalf("size %d: root %v of %+v, want %v", n, got, tree, want)
		}
		if edge := torchwood.RightEdge(n); len(tree.Hashes) != len(edge) {
			t.Errorf("size %d: %d hashes, want %d", n, len(tree.Hashes), len(edge))
		}
		tree = &Tree{Size: n, Hashes: slices.Clone(tree.Hashes)}
		tree.Append(leaf(n))
	}
	for _, size := range []int64{-1, 4, 7} {
		if (&Tree{Size: size, Hashes: make([]tlog.Hash, 2)}).valid() {
			t.Errorf("size %d has an edge of 2 hashes", size)
		}
	}
}
