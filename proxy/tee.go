package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"robotsgate/htmlmeta"
)

// A tee lets a scanner read the beginning of a body and keeps what it read, byte
// for byte, for the client. The scanner may be left behind at any time: then the
// client gets what was kept, and the rest as it comes.
type tee struct {
	body io.ReadCloser
	most int // bytes that the scanner may take off the wire

	mu      sync.Mutex
	idle    sync.Cond // no scanner is inside body.Read
	reading bool
	left    bool   // the scanner gets nothing more
	kept    []byte // read by the scanner, not yet by the client
	total   int
	err     error // with which the body ended while the scanner read it
}

// rawSlack is what a scanner may read beyond the limit of decoded bytes: the
// frames of a coding, and buffers.
const rawSlack = 64 << 10

var (
	errLeft  = errors.New("the scanner was left behind")
	errLimit = errors.New("the head is too long")
)

func newTee(body io.ReadCloser, most int) *tee {
	t := &tee{body: body, most: most + rawSlack}
	t.idle.L = &t.mu
	return t
}

// scannerSide is what the scanner reads from.
type scannerSide struct{ *tee }

func (t scannerSide) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.left:
		return 0, errLeft
	case t.err != nil:
		return 0, t.err
	case t.total >= t.most:
		return 0, errLimit
	}
	t.reading = true
	t.mu.Unlock()
	n, err := t.body.Read(p[:min(len(p), t.most)])
	t.mu.Lock()
	t.reading = false
	t.kept = append(t.kept, p[:n]...)
	t.total += n
	t.err = err
	t.idle.Broadcast()
	if t.left {
		return 0, errLeft
	}
	return n, err
}

// scan reads a head and returns what was found, never failing: an error is a
// head that was not read to its end. Where the body itself broke off there is
// no Why, since the response does too.
func (t *tee) scan(o htmlmeta.Options) htmlmeta.Result {
	return outcome(htmlmeta.Scan(scannerSide{t}, o))
}

func outcome(res htmlmeta.Result, err error) htmlmeta.Result {
	if errors.Is(err, errLimit) {
		res.Why = "limit"
	}
	return res
}

// leave takes the body away from the scanner.
func (t *tee) leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
}

// soFar scans once more what the scanner had read when its time was up.
func (t *tee) soFar(o htmlmeta.Options) htmlmeta.Result {
	t.leave()
	t.mu.Lock()
	kept := t.kept[:len(t.kept):len(t.kept)]
	t.mu.Unlock()
	res, _ := htmlmeta.Scan(bytes.NewReader(kept), o)
	res.Complete, res.Why = false, "timeout"
	return res
}

// Read is the client's side, after leave.
func (t *tee) Read(p []byte) (int, error) {
	t.mu.Lock()
	for t.reading && len(t.kept) == 0 {
		t.idle.Wait()
	}
	if len(t.kept) > 0 {
		n := copy(p, t.kept)
		t.kept = t.kept[n:]
		var err error
		if len(t.kept) == 0 {
			err = t.err // at once, which spares the client a flush
		}
		t.mu.Unlock()
		return n, err
	}
	err := t.err
	t.kept = nil // free it for the rest of a long body
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return t.body.Read(p)
}

func (t *tee) Close() error { return t.body.Close() }
