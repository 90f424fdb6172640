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

// Progress shows on s.Err, each second, how many bytes have been read, if that is a terminal. Size is the number of all
// bytes; 0: it is not known. Stop erases what is shown.
func (s Streams) Progress(read *atomic.Int64, size int64) (stop func()) {
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
				text := fmt.Sprintf("%d MiB", read.Load()>>20)
				if size > 0 {
					text = fmt.Sprintf("%d %% of %d MiB", read.Load()*100/size, size>>20)
				}
				fmt.Fprint(s.Err, text, "\r") // what is printed next overwrites it
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
