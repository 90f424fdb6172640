package bundle

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"robotsgate/internal/audit"
)

func check(t testing.TB, bundle []byte, o CheckOptions) *Checked {
	t.Helper()
	o.Parse = parse
	c, err := Check(bytes.NewReader(bundle), int64(len(bundle)), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLogs makes one bundle of two logs: one is signed by the key of the other under a longer name, and was rotated. The
// file with its end is read first, and the gate was killed once: what no checkpoint covers is left out.
func TestLogs(t *testing.T) {
	k := newKept(t, 1)
	c, err := parse(k.config)
	if err != nil {
		t.Fatal(err)
	}
	add := func(w *logWriter, from, to int) {
		for i := from; i < to; i++ {
			w.entry(k.entry(t, c, i, origin(0), fmt.Sprintf("/%d", i), noon.Add(time.Minute)))
		}
	}
	first, second := newLog(t, "gate.example"), newLog(t, "gate.example/RUN")
	first.checkpoint(t, true)
	add(first, 0, 5)
	first.checkpoint(t, false)
	add(first, 5, 7) // and no checkpoint

	second.checkpoint(t, true)
	add(second, 0, 13)
	second.checkpoint(t, false)
	beginning := bytes.Clone(second.Bytes())
	second.Reset()
	second.checkpoint(t, true)
	add(second, 13, 20)
	second.checkpoint(t, false, witness(t, "witness.example"))
	add(second, 20, 21)
	second.checkpoint(t, false)

	for _, test := range []struct {
		paths string // of the selected entries
		want  int
		sizes []int64
	}{
		{origin(0) + "/1*", 12, []int64{5, 20}}, // the cosigned checkpoint covers all that is selected
		{origin(0) + "/*", 26, []int64{5, 21}},  // only the last one does; two entries are not covered
	} {
		pattern, err := audit.ParseURLPattern(test.paths)
		if err != nil {
			t.Fatal(err)
		}
		keys := first.keys(t, witness(t, "witness.example").Verifier().String())
		collector, logs := collect(t, &audit.Filter{URL: pattern}, keys, second.Bytes(), beginning, first.Bytes())
		bundle, m := write(t, collector, options(k, logs, keys, "Two logs"))
		var sizes []int64
		got := check(t, bundle, CheckOptions{Keys: []string{first.signer.Key()}})
		for _, l := range got.Logs {
			sizes = append(sizes, l.Size)
		}
		if !got.OK() || !slices.Equal(sizes, test.sizes) || got.Proven != test.want || m.Entries != test.want {
			t.Errorf("%s: sizes %v, want %v; %+v", test.paths, sizes, test.sizes, got)
		}
	}
}

// TestStream makes a bundle of a log on standard output, the gate of which was killed: the log went on from its last
// checkpoint, with other entries at the indexes of those behind it.
func TestStream(t *testing.T) {
	k := newKept(t, 1)
	c, err := parse(k.config)
	if err != nil {
		t.Fatal(err)
	}
	w := newLog(t, "gate.example")
	add := func(from, to int) {
		for i := from; i < to; i++ {
			w.entry(k.entry(t, c, i, origin(0), fmt.Sprintf("/%d", i), noon.Add(time.Minute)))
		}
	}
	w.checkpoint(t, true)
	add(0, 5)
	w.checkpoint(t, false)
	kept := w.tree.Clone()
	add(5, 8) // lost for the tree
	w.tree = kept
	w.checkpoint(t, true)
	add(8, 14)
	w.checkpoint(t, false)
	bundle, m := k.bundle(t, w, &audit.Filter{})
	if m.Entries != 11 || m.Uncovered != 3 || m.Logs[0].Selected != 11 {
		t.Errorf("got %d records, %d of the log, %d uncovered", m.Entries, m.Logs[0].Selected, m.Uncovered)
	}
	if c := check(t, bundle, CheckOptions{}); !c.OK() || c.Proven != 11 {
		t.Errorf("got %+v", c)
	}
}
