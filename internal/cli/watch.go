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
				look.take()
			case <-tick.C:
				if !look.again() {
					continue
				}
				why = "the file has changed"
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
}

// again reports whether the file holds something new, and held it at the last look
// too: it may be in the middle of being written. One that can't be read is being
// replaced.
func (l *look) again() bool {
	now := l.read()
	settled := bytes.Equal(now, l.last)
	l.last = now
	if now == nil || !settled || bytes.Equal(now, l.known) {
		return false
	}
	l.known = now
	return true
}

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
