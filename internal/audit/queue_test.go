package audit

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestGather: lines that come all the time are written together, but soon, and at once
// where there are many of them, or no more will come.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes, lines := 0, 0
		q := newQueue(func(b []byte, _ int) { writes++; lines += bytes.Count(b, []byte{'\n'}) }, func() time.Duration { return 0 })
		const each, n = 100 * time.Microsecond, 10_000
		behind := int(apart/each) + 1
		for i := range n {
			q.add([]byte("x\n"))
			time.Sleep(each)
			synctest.Wait()
			if lines < i-behind {
				t.Fatalf("%d lines were written after %d", lines, i)
			}
		}
		if most := int(n*each/apart+ahead/apart) + 1; writes < int(ahead/apart) || writes > most {
			t.Errorf("%d writes, want about %d", writes, most)
		}
		time.Sleep(apart)
		q.add([]byte("x\n"))
		synctest.Wait()
		q.add(bytes.Repeat([]byte("x\n"), many))
		if synctest.Wait(); lines != n+1+many {
			t.Errorf("%d lines were written when there were many, want %d", lines, n+1+many)
		}
		q.add([]byte("x\n"))
		start := time.Now()
		if err := q.close(); err != nil || lines != n+2+many || time.Since(start) != 0 {
			t.Errorf("%v, %d lines at the end, after %v", err, lines, time.Since(start))
		}
	})
}

// TestNowAndThen: what comes now and then is written as it comes.
func TestNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := 0
		q := newQueue(func(b []byte, _ int) { lines += bytes.Count(b, []byte{'\n'}) }, func() time.Duration { return 0 })
		for i := range 1000 {
			q.add([]byte("x\n"))
			if synctest.Wait(); lines != i+1 {
				t.Fatalf("%d lines were written, want %d", lines, i+1)
			}
			time.Sleep(apart)
		}
		q.close()
	})
}
