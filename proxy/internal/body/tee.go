// Package body carries the bodies of requests and responses: the tee that lets a page's
// head be scanned, uploads, and the relays of tunnels, each with its time limits.
package body

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"robotsgate/htmlmeta"
)

// A Tee lets a scanner read the beginning of a body and keeps what it read, byte for byte,
// for the client. The scanner may be left at any time: then the client gets what was kept,
// and the rest as it arrives.
type Tee struct {
	body io.ReadCloser
	most int // bytes that are kept

	mu      sync.Mutex
	idle    sync.Cond // no scanner is inside body.Read
	reading bool
	left    bool   // the scanner gets nothing more
	kept    []byte // read of the body, not yet by the client
	scanned int    // of kept
	err     error  // with which the body ended while the scanner read it
}

const (
	// rawSlack is what a scanner may read beyond the limit of decoded bytes: the frames of a
	// content coding, and buffers.
	rawSlack = 64 << 10
	// minRead is how much is read at once at least, in bytes, if there is so much.
	minRead = 8 << 10
	// firstCoded is how much of a coded body is tried alone at first, in bytes. A decoder gives nothing until it has
	// come to the end of a block or a window, which costs several times as much as to scan a head.
	firstCoded = 512
)

var (
	errLeft  = errors.New("the scanner was left behind")
	errLimit = errors.New("the head is too long")
	errFirst = errors.New("the first bytes were not enough")
)

// NewTee returns a tee of a body. Its scanner may read about most bytes.
func NewTee(body io.ReadCloser, most int) *Tee {
	t := &Tee{body: body, most: most + rawSlack}
	t.idle.L = &t.mu
	return t
}

// Scan reads a page's head. After an error the head was not read to its end, which the result says. Why is
// "limit" if the head is too long. If the body itself broke off Why stays empty, since the response breaks off too.
func (t *Tee) Scan(o htmlmeta.Options) htmlmeta.Result {
	if o.ContentEncoding != "" {
		if res, _ := htmlmeta.Scan(io.MultiReader(bytes.NewReader(t.first()), noMore{}), o); res.Complete {
			return res
		}
	}
	res, err := htmlmeta.Scan(scannerSide{t}, o)
	if errors.Is(err, errLimit) {
		res.Why = "limit"
	}
	return res
}

// first waits for the beginning of the body, and returns up to firstCoded bytes of it.
func (t *Tee) first() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fillLocked()
	return bytes.Clone(t.kept[:min(len(t.kept), firstCoded)])
}

// A noMore is a reader that has come to the end of what is tried first.
type noMore struct{}

func (noMore) Read([]byte) (int, error) { return 0, errFirst }

// scannerSide is what the scanner reads from.
type scannerSide struct{ *Tee }

func (t scannerSide) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scanned == len(t.kept) {
		t.fillLocked()
	}
	switch {
	case t.left:
		return 0, errLeft
	case t.scanned < len(t.kept):
		n := copy(p, t.kept[t.scanned:])
		t.scanned += n
		return n, nil
	case t.err != nil:
		return 0, t.err
	case len(t.kept) >= t.most:
		return 0, errLimit
	}
	return 0, nil
}

// fillLocked reads some more of the body, unless it has ended or no more may be kept. It releases the lock meanwhile:
// the client may then take what was kept before.
func (t *Tee) fillLocked() {
	if t.left || t.err != nil || len(t.kept) >= t.most {
		return
	}
	t.kept = slices.Grow(t.kept, minRead)
	room := t.kept[len(t.kept):min(cap(t.kept), t.most)]
	t.reading = true
	t.mu.Unlock()
	n, err := t.body.Read(room)
	t.mu.Lock()
	t.reading = false
	t.kept = t.kept[:len(t.kept)+n]
	t.err = err
	t.idle.Broadcast()
}

// Leave takes the body away from the scanner.
func (t *Tee) Leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
}

// ScanSoFar scans once more what the scanner had read when its time was up.
func (t *Tee) ScanSoFar(o htmlmeta.Options) htmlmeta.Result {
	t.mu.Lock()
	t.left = true
	kept := t.kept
	t.mu.Unlock()
	res, _ := htmlmeta.Scan(bytes.NewReader(kept), o)
	res.Complete, res.Why = false, "timeout"
	return res
}

// Read is the client's side, after Leave.
func (t *Tee) Read(p []byte) (int, error) {
	t.mu.Lock()
	for t.reading && len(t.kept) == 0 {
		t.idle.Wait()
	}
	n := copy(p, t.kept)
	t.kept = t.kept[n:]
	whole, err := len(t.kept) == 0, t.err
	if whole && !t.reading {
		t.kept = nil // free it for the rest of a long body
	}
	t.mu.Unlock()
	switch {
	case !whole:
		return n, nil
	case n > 0 || err != nil:
		return n, err // at once, which spares the client a flush
	}
	return t.body.Read(p)
}

func (t *Tee) Close() error { return t.body.Close() }
