package body

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"robotsgate/htmlmeta"
)

// A Tee lets a scanner read the beginning of a body and keeps what it read, byte for byte,
// for the client. The scanner may be left at any time: then the client gets what was kept,
// and the rest as it arrives.
type Tee struct {
	body Ready
	most int // bytes that the scanner may take off the wire

	mu      sync.Mutex
	idle    sync.Cond // no scanner is inside body.Read
	reading bool
	left    bool   // the scanner gets nothing more
	kept    []byte // read by the scanner, not yet by the client
	total   int
	err     error // with which the body ended while the scanner read it
}

// rawSlack is what a scanner may read beyond the limit of decoded bytes: the frames of a
// content coding, and buffers.
const rawSlack = 64 << 10

var (
	errLeft  = errors.New("the scanner was left behind")
	errLimit = errors.New("the head is too long")
	errWait  = errors.New("more has not arrived yet")
)

// NewTee returns a tee of a body, whose scanner may read about most bytes.
func NewTee(body io.ReadCloser, most int) *Tee {
	t := &Tee{body: AsReady(body), most: most + rawSlack}
	t.idle.L = &t.mu
	return t
}

// scannerSide is what the scanner reads from.
type scannerSide struct{ *Tee }

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
	n, err := t.body.Read(p[:min(len(p), t.most-t.total)])
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

// outcome returns the result of a scan without its error: after an error the head was not read to
// its end, which the result says too. Why becomes "limit" if the Tee gave no more bytes. If the
// body itself broke off Why stays empty, since the response breaks off too.
func outcome(res htmlmeta.Result, err error) htmlmeta.Result {
	if errors.Is(err, errLimit) {
		res.Why = "limit"
	}
	return res
}

// AtHand reports whether some of the body can be read at once.
func (t *Tee) AtHand() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept) > 0 || t.err != nil || !t.reading && t.body.AtHand()
}

// Peek returns nothing: what a scanner has read is for Read.
func (t *Tee) Peek() ([]byte, bool) { return nil, false }

// ScanAtHand reads a page's head from what of the body is at hand, and consumes nothing. If
// ok is false that was not enough.
func (t *Tee) ScanAtHand(o htmlmeta.Options) (res htmlmeta.Result, ok bool) {
	beginning, whole := t.body.Peek()
	if len(beginning) == 0 {
		return res, false
	}
	if o.ContentEncoding != "" && len(beginning) > firstCoded {
		if res, ok = scanPrefix(&prefixReader{left: beginning[:firstCoded]}, o); ok {
			return res, true
		}
	}
	return scanPrefix(&prefixReader{left: beginning, whole: whole}, o)
}

// firstCoded is how much of a coded body is tried alone at first, in bytes. Decoders give
// nothing until they have come to the end of a block or a window, which costs several times as
// much as to scan a head. Where it is not enough, an eighth of what is at hand is decoded twice.
const firstCoded = 512

func scanPrefix(h *prefixReader, o htmlmeta.Options) (res htmlmeta.Result, ok bool) {
	res = outcome(htmlmeta.Scan(h, o))
	return res, res.Complete || !h.waits // a decoder may wait behind the head
}

// A prefixReader has the beginning of a body, and does not wait for the rest.
type prefixReader struct {
	left  []byte
	whole bool // there is no rest
	waits bool // since that was not enough
}

func (h *prefixReader) Read(p []byte) (n int, err error) {
	n = copy(p, h.left)
	h.left = h.left[n:]
	switch {
	case n > 0 || len(p) == 0:
		return n, nil
	case h.whole:
		return 0, io.EOF
	}
	h.waits = true
	return 0, errWait
}

// Scan reads a page's head, some of which may have been read already.
func (t *Tee) Scan(o htmlmeta.Options) htmlmeta.Result {
	return outcome(htmlmeta.Scan(io.MultiReader(bytes.NewReader(t.snapshot()), scannerSide{t}), o))
}

// snapshot returns what has been read and not been taken by the client.
func (t *Tee) snapshot() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept[:len(t.kept):len(t.kept)]
}

// Leave takes the body away from the scanner.
func (t *Tee) Leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
}

// ScanSoFar scans once more what the scanner had read when its time was up.
func (t *Tee) ScanSoFar(o htmlmeta.Options) htmlmeta.Result {
	t.Leave()
	res, _ := htmlmeta.Scan(bytes.NewReader(t.snapshot()), o)
	res.Complete, res.Why = false, "timeout"
	return res
}

// Read is the client's side, after Leave.
func (t *Tee) Read(p []byte) (int, error) {
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
			if err == nil && !t.reading && t.body.AtHand() {
				m := 0 // under the lock: what is here does not wait
				m, err = t.body.Read(p[n:])
				n, t.err = n+m, err
			}
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

// ReadArrived reads what else has arrived, and does not wait.
func (t *Tee) ReadArrived(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) > 0 || t.err != nil || t.reading {
		return 0, nil
	}
	n, err := t.body.ReadArrived(p)
	t.err = err
	return n, err
}

func (t *Tee) Close() error { return t.body.Close() }
