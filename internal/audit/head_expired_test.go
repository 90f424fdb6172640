package audit

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/proxy"
)

// TestVerifyExpired: a chain with an expired head still verifies, and changed or added records
// are found. A chain that has no head and is not listed is a fault.
func TestVerifyExpired(t *testing.T) {
	dir := t.TempDir()
	file, chains := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "chains")
	write := func() Link {
		l := gate(t, dir, nil)
		l.Write(&proxy.Record{ID: "a", Start: time.Now(), Method: "GET", URL: "http://a.example/"})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return lastLink(t, file)
	}
	old := write()
	oldLog, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head := filepath.Join(chains, old.Chain+headSuffix)
	if err := os.Chtimes(head, time.Time{}, time.Now().Add(-minKeepHeads)); err != nil {
		t.Fatal(err)
	}
	write()
	if _, err := os.Stat(head); err == nil {
		t.Fatal("the old head is still there")
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if faults, notes := verifyStrictly(t, dir, []string{file}, true); len(faults)+len(notes) > 0 {
		t.Errorf("unchanged: faults %q, notes %q", faults, notes)
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	for _, test := range []struct {
		name   string
		link   Link
		n      int
		before []byte // the added records
		want   string
	}{
		{"replaced", Link{Chain: old.Chain}, 1, whole[len(oldLog):], "record 1 of chain C is another than the one that was written"},
		{"added", old, 1, whole, "chain C has ended with record 1: what is behind it has been added"},
		{"a chain that is not listed", Link{Chain: "FORGEDFORGEDFORGEDFORGEDFO"}, 20, whole, "chain C is not known to this data_dir: its records have been added, or "},
	} {
		if err := os.WriteFile(file, test.before, 0o600); err != nil {
			t.Fatal(err)
		}
		forge(t, file, test.link, test.n, yesterday)
		if faults, _ := verify(t, dir, []string{file}); !strings.Contains(strings.Join(faults, "\n"), test.want) {
			t.Errorf("%s: faults %q, want %q", test.name, faults, test.want)
		}
	}
}

// TestVerifyNameOfExpired: if only the name of a chain is kept, records are a fault if they are
// too late for their gate, and otherwise noted.
func TestVerifyNameOfExpired(t *testing.T) {
	const chain = "CHAINOFEARLIERVERSIONAAAAA"
	listed := time.Now().Truncate(time.Second)
	for _, test := range []struct {
		name string
		at   time.Time
		late bool
	}{
		{"written before", listed.Add(-minKeepHeads), false},
		{"dated since", listed.Add(-minKeepHeads + clockSkew + time.Second), true},
		{"dated yesterday", listed.Add(-24 * time.Hour), true},
	} {
		dir := t.TempDir()
		file, list := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "chains", expiredFile)
		for path, text := range map[string]string{file: "", list: chain + "\n"} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(list, time.Time{}, listed); err != nil {
			t.Fatal(err)
		}
		forge(t, file, Link{Chain: chain}, 2, test.at)
		faults, notes := verify(t, dir, []string{file})
		if test.late {
			if len(faults) != 1 || !strings.Contains(faults[0], "but its gate did not write to it after ") {
				t.Errorf("%s: faults %q", test.name, faults)
			}
			continue
		}
		const want = "whether chain C is as its gate wrote it was not checked: its head is not kept any more"
		if len(faults) > 0 || len(notes) == 0 || notes[len(notes)-1] != want {
			t.Errorf("%s: faults %q, notes %q, want %q", test.name, faults, notes, want)
		}
		if faults, _ := verifyStrictly(t, dir, []string{file}, true); !slices.Equal(faults, []string{want}) {
			t.Errorf("%s, strict: faults %q, want %q", test.name, faults, want)
		}
	}
}

// TestExpiredUnreadable: of a head that can't be read the time is kept, and half a line in the
// list does not damage the next.
func TestExpiredUnreadable(t *testing.T) {
	chains := t.TempDir()
	written := time.Now().Add(-2 * minKeepHeads).Truncate(time.Second).UTC()
	damaged, list := filepath.Join(chains, "DAMAGED"+headSuffix), filepath.Join(chains, expiredFile)
	for path, text := range map[string]string{damaged: "{", list: `{"chain":"CUT","num`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(damaged, time.Time{}, written); err != nil {
		t.Fatal(err)
	}
	removeOldHeads(chains, 0, slog.New(slog.DiscardHandler))
	want := map[string]Head{"DAMAGED": {Chain: "DAMAGED", Time: written}}
	if got, err := Expired(chains); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, got %v, want %v", err, got, want)
	}
}

// TestOldHeadsStay: heads of running gates are not removed, nor any if they can't be listed.
func TestOldHeadsStay(t *testing.T) {
	if !canLock(t) {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	chains := filepath.Join(dir, "chains")
	age := func(chain string) {
		if err := os.Chtimes(filepath.Join(chains, chain+headSuffix), time.Time{}, time.Now().Add(-minKeepHeads)); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := writeHead(chains, Head{Chain: "ALIVE", Number: 1, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	ended, err := writeHead(chains, Head{Chain: "ENDED", Number: 1, Ended: true})
	if err != nil {
		t.Fatal(err)
	}
	ended.Close()
	age("ALIVE")
	age("ENDED")
	list := filepath.Join(chains, expiredFile)
	if err := os.Mkdir(list, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 1} {
		restart(t, dir)
		if heads, err := Heads(chains); err != nil || len(heads) != want || heads["ALIVE"].Number != 1 {
			t.Errorf("%v, heads %v, want %d", err, heads, want)
		}
		os.Remove(list)
	}
}
