package console

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// Terminal returns w if it is a terminal.
func Terminal(w any) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Progress shows the number of lines that are read on s.Err, each second, if that is a terminal. Stop erases it.
func (s Streams) Progress(lines *atomic.Int64) (stop func()) {
	if _, ok := Terminal(s.Err); !ok {
		return func() {}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(s.Err, "%d lines\r", lines.Load()) // what is printed next overwrites it
			case <-done:
				fmt.Fprint(s.Err, "\x1b[K") // erases the line (ECMA-48, 8.3.41)
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
