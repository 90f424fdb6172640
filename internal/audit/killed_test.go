package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/proxy"
)

// killed copies the folder of a gate as it is now, as if the gate were killed, and returns the
// copy.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// burst writes n records at once.
func burst(l *Log, n int) {
	for i := range n {
		l.Write(&proxy.Record{ID: fmt.Sprint(i), Start: time.Now(), Method: "GET", URL: "http://a.example/", Origin: "http://a.example"})
	}
	synctest.Wait()
}

// forge appends n records of a time to a chain, with hashes without a key.
func forge(t *testing.T, file string, behind Link, n int, at time.Time) {
	t.Helper()
	c := newChain(nil)
	c.id, c.keyID, c.number = behind.Chain, behind.Key, behind.Number
	if behind.Hash != "" {
		c.hash = behind.Hash
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		line := fmt.Appendf(nil, `{"time":"%s","id":"F%d","method":"GET","origin":"http://a.example","path":"/","status":200,"bytes":0,"duration":0}`+"\n",
			at.UTC().Format(time.RFC3339Nano), i)
		data = c.link(data, line, Link{})
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// lastLink returns the link of the last record in a file.
func lastLink(t *testing.T, file string) Link {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return lastLinkOf(t, data)
}

func lastLinkOf(t *testing.T, lines []byte) Link {
	t.Helper()
	lines = bytes.TrimSpace(lines)
	var l Link
	if err := json.Unmarshal(lines[bytes.LastIndexByte(lines, '\n')+1:], &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestVerifyAfterHead: after the last head of a killed gate there may be the records that the
// head permits, and no others.
func TestVerifyAfterHead(t *testing.T) {
	dir := t.TempDir()
	var busy, idle string
	var at time.Time
	kill := func() string { return killed(t, dir) } // a copy that outlives the bubble
	synctest.Test(t, func(t *testing.T) {
		l := gate(t, dir, nil)
		at = time.Now()
		burst(l, 3)
		busy = kill()
		time.Sleep(reserveTime)
		synctest.Wait()
		idle = kill()
		l.Close()
	})
	const (
		more  = "records have been added"
		ended = "has ended with record 3: what is behind it has been added"
	)
	for _, test := range []struct {
		name string
		from string
		n    int
		at   time.Time
		want string // suffix of the faults; empty: none
	}{
		{"nothing added", busy, 0, at, ""},
		{"as many as are permitted", busy, minReserved - 3, at.Add(reserveTime), ""},
		{"one more", busy, minReserved - 2, at, more},
		{"500", busy, 500, at, more},
		{"one too late", busy, 1, at.Add(reserveTime + 1), more},
		{"one too early", busy, 1, at.Add(-clockSkew - 1), more},
		{"nothing added to an idle gate's", idle, 0, at, ""},
		{"one added to an idle gate's", idle, 1, at, ended},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := killed(t, test.from)
			file := filepath.Join(dir, "audit.jsonl")
			forge(t, file, lastLink(t, file), test.n, test.at)
			faults, notes := verify(t, dir, []string{file})
			if all := strings.Join(faults, "\n"); test.want == "" && all != "" || !strings.HasSuffix(all, test.want) {
				t.Errorf("faults %q, want %q", faults, test.want)
			}
			if behind := test.from == busy && test.want == ""; behind != (len(notes) == 1 && strings.Contains(notes[0], "its gate was killed within a second")) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// TestVerifyKilled: whenever a gate is killed, its records verify.
func TestVerifyKilled(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := gate(t, dir, nil)
		defer l.Close()
		for i, step := range []struct {
			records int
			pause   time.Duration
		}{
			{1, 0}, {1, 10 * time.Millisecond}, {100, 0}, {300, time.Millisecond}, {1000, 980 * time.Millisecond}, {1, 30 * time.Millisecond},
			{2000, time.Second}, {1, time.Hour}, {17, 999 * time.Millisecond}, {40, time.Millisecond}, {1, time.Second}, {0, time.Second}, {1, 0},
		} {
			burst(l, step.records)
			for _, when := range []string{"at once", "later"} {
				copied := killed(t, dir)
				if faults, _ := verify(t, copied, []string{filepath.Join(copied, "audit.jsonl")}); len(faults) > 0 {
					t.Errorf("step %d, %s: faults %q", i, when, faults)
				}
				time.Sleep(step.pause)
				synctest.Wait()
			}
		}
		data, err := os.ReadFile(file)
		if err != nil || bytes.Count(data, []byte{'\n'}) != 3463 {
			t.Errorf("%d records were written, %v", bytes.Count(data, []byte{'\n'}), err)
		}
	})
}

// TestVerifyRunning: while the records are read the gate writes more than the heads permit that
// were read before.
func TestVerifyRunning(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "audit.jsonl")}
	heads := func() map[string]Head {
		all, err := Heads(filepath.Join(dir, "chains"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		l := gate(t, dir, nil)
		burst(l, 1)
		time.Sleep(reserveTime)
		synctest.Wait()
		v := NewVerifier(VerifyOptions{Heads: heads(), Files: files})
		burst(l, 100)
		time.Sleep(2 * clockSkew)
		burst(l, 100)
		if err := Lines(files, nil, v.Line); err != nil {
			t.Fatal(err)
		}
		v.Later(heads())
		v.End()
		if v.Faulty > 0 || len(v.Notes) > 0 || v.Records != 201 {
			t.Errorf("%d records, faults %q, notes %q", v.Records, v.Faults, v.Notes)
		}
		l.Close()
	})
}

// restart starts and ends a gate in a folder.
func restart(t *testing.T, dir string) {
	t.Helper()
	l := gate(t, dir, nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// moveHeads makes the heads in a copy of a folder name the copied file.
func moveHeads(t *testing.T, dir string) {
	t.Helper()
	chains := filepath.Join(dir, "chains")
	heads, err := Heads(chains)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		h.File = filepath.Join(dir, "audit.jsonl")
		locked, err := writeHead(chains, h)
		if err != nil {
			t.Fatal(err)
		}
		if locked != nil {
			locked.Close()
		}
	}
}

// TestEndKilled: the next start ends the chain of a killed gate where it finds the end. Records
// that are added later are found.
func TestEndKilled(t *testing.T) {
	if !canLock(t) {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	var at time.Time
	var copied string
	kill := func() string { return killed(t, dir) }
	synctest.Test(t, func(t *testing.T) {
		l := gate(t, dir, nil)
		l.writer.out.max = 1200
		burst(l, 3)
		time.Sleep(reserveTime)
		burst(l, 2)
		at = time.Now()
		copied = kill()
		l.Close()
	})
	for _, test := range []struct {
		name   string
		before int   // records added before the restart
		after  int   // and after it
		number int64 // of the head after the restart
		faults int
	}{
		{"nothing added", 0, 0, 5, 0},
		{"one added after the restart", 0, 1, 5, 1},
		{"all that are permitted", 14, 0, 19, 0},
		{"too many", 15, 0, 19, 1},
		{"500", 500, 0, 19, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := killed(t, copied)
			moveHeads(t, dir)
			file := filepath.Join(dir, "audit.jsonl")
			end := lastLink(t, file)
			forge(t, file, end, test.before, at)
			restart(t, dir)
			heads, err := Heads(filepath.Join(dir, "chains"))
			if h := heads[end.Chain]; err != nil || !h.Ended || h.Number != test.number {
				t.Errorf("%v, head %+v", err, h)
			}
			forge(t, file, lastLink(t, file), test.after, at)
			faults, notes := verify(t, dir, append(rotatedFiles(file), file))
			if len(faults) != test.faults || len(notes) > 0 {
				t.Errorf("faults %q, notes %q, want %d faults", faults, notes, test.faults)
			}
		})
	}
	t.Run("the log is gone", func(t *testing.T) {
		dir := killed(t, copied)
		moveHeads(t, dir)
		file := filepath.Join(dir, "audit.jsonl")
		if err := os.Rename(file, file+".1"); err != nil {
			t.Fatal(err)
		}
		restart(t, dir)
		if err := os.Rename(file+".1", file); err != nil {
			t.Fatal(err)
		}
		if faults, _ := verify(t, dir, append(rotatedFiles(file), file)); len(faults) > 0 {
			t.Errorf("faults %q", faults)
		}
	})
}

// TestEndKilledRunning: the start of another gate does not end the chain of a running one.
func TestEndKilledRunning(t *testing.T) {
	dir := t.TempDir()
	l := gate(t, dir, nil)
	defer l.Close()
	for i := range 3 {
		l.Write(&proxy.Record{ID: fmt.Sprint(i), Start: time.Now(), Method: "GET", URL: "http://a.example/", Origin: "http://a.example"})
		restart(t, dir)
		heads, err := Heads(filepath.Join(dir, "chains"))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			if h.Ended {
				t.Fatalf("ended: %+v", h)
			}
		}
	}
}

func canLock(t *testing.T) bool {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, _ := tryLock(f)
	return got
}
