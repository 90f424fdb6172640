package cli

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"robotsgate/internal/config"
)

// glance is the time between two looks at the configuration.
const glance = time.Second

// blink is the time between two looks where somebody waits for the change.
const blink = 100 * time.Millisecond

// watch says when the file at path has changed, or SIGHUP asks to read it again, until
// ctx ends. An empty path is no file.
//
// It looks at what the file holds: that is small, and tells the same of a file that is
// written in place, replaced by another as editors do, or reached through links that
// are turned round as in Kubernetes; on every file system.
func watch(ctx context.Context, path string) <-chan string {
	changed := make(chan string)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // for good: it must not end a gate that drains
	look := newLook(path)
	go func() {
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for {
			why := ""
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				why = "SIGHUP"
				look.settle(ctx)
			case <-tick.C:
				switch {
				case look.again():
					why = "the file has changed"
				case look.lost():
					why = "the file is gone" // who reads it again says so
				default:
					continue
				}
			}
			select {
			case changed <- why:
			case <-ctx.Done():
				return
			}
		}
	}()
	return changed
}

// A look is what was seen of a file.
type look struct {
	path  string
	known []byte // what it held when it was last read for use
	last  []byte // at the last look
	gone  int    // looks in a row that found nothing
}

func newLook(path string) *look {
	l := &look{path: path}
	l.take()
	return l
}

// take looks at the file that is about to be read for use.
func (l *look) take() {
	l.known = l.read()
	l.last = l.known
	l.gone = 0
}

// settle takes a look when two in a row have seen the same, within a second or two.
func (l *look) settle(ctx context.Context) {
	for range 20 {
		l.take()
		select {
		case <-time.After(blink):
		case <-ctx.Done():
			return
		}
		if bytes.Equal(l.read(), l.known) {
			return
		}
	}
}

// again reports whether the file holds something new, and held it at the last look
// too: it may be in the middle of being written. One that can't be read is being
// replaced.
func (l *look) again() bool {
	now := l.read()
	if l.gone++; now != nil {
		l.gone = 0
	}
	settled := bytes.Equal(now, l.last)
	l.last = now
	if now == nil || !settled || bytes.Equal(now, l.known) {
		return false
	}
	l.known = now
	return true
}

// longGone is after how many looks a file that can't be read is no longer taken for
// one that is being replaced.
const longGone = 10

// lost reports, once, that the file has been missing for long.
func (l *look) lost() bool { return l.known != nil && l.gone == longGone }

// read returns what the file holds, nil if that can't be had: a pipe would be empty
// afterwards.
func (l *look) read() []byte {
	info, err := os.Stat(l.path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > config.MaxFileBytes {
		return nil
	}
	data, err := os.ReadFile(l.path)
	if err != nil {
		return nil
	}
	return data
}
