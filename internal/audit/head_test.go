package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHead: a second after a record the head states it, and permits no more.
func TestHead(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := gate(t, dir, nil)
		for n := range int64(5) {
			time.Sleep(300 * time.Millisecond)
			burst(l, 1)
			time.Sleep(reserveTime)
			synctest.Wait()
			heads, err := Heads(filepath.Join(dir, "chains"))
			if h := heads[l.writer.chain.id]; err != nil || h.Number != n+1 || h.Limit != n+1 || h.Ended {
				t.Fatalf("%v, head %+v, want number %d", err, h, n+1)
			}
		}
		l.Close()
	})
}

// TestHeadUnwritable: without a folder for heads records are written, and the failure is
// logged once a minute.
func TestHeadUnwritable(t *testing.T) {
	dir := t.TempDir()
	heads := filepath.Join(dir, "chains")
	if err := os.WriteFile(heads, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var out, logged bytes.Buffer
		l := open(t, Options{File: "-", Heads: heads}, &out, &logged)
		for range 61 {
			burst(l, 1)
			time.Sleep(time.Second)
		}
		l.Close()
		if n := strings.Count(out.String(), "\n"); n != 61 {
			t.Errorf("%d records, want 61", n)
		}
		if n := strings.Count(logged.String(), "position of the audit log's chain can't be kept"); n != 2 {
			t.Errorf("%d reports, want 2: %s", n, logged.String())
		}
	})
}
