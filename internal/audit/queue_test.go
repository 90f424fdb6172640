package audit

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/record"
)

// A countingDisk counts lines of entries, and writes of them.
type countingDisk struct{ writes, lines atomic.Int64 }

func (d *countingDisk) Write(b []byte) (int, error) {
	if n := len(entriesIn(b)); n > 0 {
		d.writes.Add(1)
		d.lines.Add(int64(n))
	}
	return len(b), nil
}

// TestWriteInterval: under load several entries are written together, the others at once, and
// Close writes the rest.
func TestWriteInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &countingDisk{}
		l := open(t, Options{Config: Config{File: "-"}}, d, nil)
		d.writes.Store(0)
		const each, n = 100 * time.Microsecond, 10_000
		for i := range n {
			l.Write(&record.Record{})
			time.Sleep(each) // fake clock
			synctest.Wait()
			if behind := int(writeInterval/each) + 1; int(d.lines.Load()) < i-behind {
				t.Fatalf("%d lines are written after %d", d.lines.Load(), i)
			}
		}
		if most := int(n*each/writeInterval) + promptWrites; int(d.writes.Load()) > most {
			t.Errorf("%d writes, want %d at most", d.writes.Load(), most)
		}
		time.Sleep(2 * time.Second) // fake clock
		synctest.Wait()
		for range promptWrites {
			before := d.lines.Load()
			l.Write(&record.Record{})
			if synctest.Wait(); d.lines.Load() != before+1 {
				t.Fatal("a record is not written at once, without load")
			}
		}
		for range 5 {
			l.Write(&record.Record{})
		}
		if err := l.Close(); err != nil || d.lines.Load() != n+promptWrites+5 {
			t.Errorf("%v, %d lines at the end, want %d", err, d.lines.Load(), n+promptWrites+5)
		}
	})
}

// TestQueueKeepsLines: lines that are taken stay as they are while others are added.
func TestQueueKeepsLines(t *testing.T) {
	q := newQueue()
	for i := range 10 {
		line := strings.Repeat(string(rune('a'+i)), 100) + "\n"
		if err := q.add([]byte(line)); err != nil {
			t.Fatal(err)
		}
		got := q.take()
		if err := q.add([]byte("other\n")); err != nil {
			t.Fatal(err)
		}
		if string(got) != line {
			t.Fatalf("got %q, want %q", got, line)
		}
		q.take()
	}
	q.close()
	if err := q.add([]byte("late\n")); err != errTooSlow {
		t.Errorf("after close: %v", err)
	}
}
