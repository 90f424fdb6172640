package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"robotsgate/htmlmeta"
	"robotsgate/proxy/internal/memory"
)

// A tee lets a scanner read the beginning of a body and keeps what it read, byte
// for byte, for the client. The scanner may be left behind at any time: then the
// client gets what was kept, and the rest as it comes.
type tee struct {
	body io.ReadCloser
	here func() bool // whether body can be read at once; nil: nobody knows
	most int         // bytes that the scanner may take off the wire

	memory *memory.Reservation // for what is kept beyond keptFree; nil: unlimited

	mu      sync.Mutex
	idle    sync.Cond // no scanner is inside body.Read
	reading bool
	left    bool   // the scanner gets nothing more
	kept    []byte // read by the scanner, not yet by the client
	total   int
	paid    int   // of total: there is memory for it
	err     error // with which the body ended while the scanner read it
}

// Memory for what is kept, in bytes: free, and taken at a time beyond that.
const (
	keptFree = 16 << 10
	keptStep = 64 << 10
)

// rawSlack is what a scanner may read beyond the limit of decoded bytes: the
// frames of a coding, and buffers.
const rawSlack = 64 << 10

var (
	errLeft  = errors.New("the scanner was left behind")
	errLimit = errors.New("the head is too long")
	errWait  = errors.New("more has not come yet")
)

func newTee(body io.ReadCloser, most int) *tee {
	t := &tee{body: body, most: most + rawSlack, paid: keptFree}
	if b, ok := body.(interface{ AtHand() bool }); ok {
		t.here = b.AtHand
	}
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
	case t.total >= t.paid:
		if !t.memory.Take(keptStep, memory.ForProgress) {
			return 0, errLimit
		}
		t.paid += keptStep
	}
	t.reading = true
	t.mu.Unlock()
	n, err := t.body.Read(p[:min(len(p), t.most, t.paid-t.total)])
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

// outcome is that of a scan, which never fails: an error is a head that was not
// read to its end. Where the body itself broke off there is no Why, since the
// response does too.
func outcome(res htmlmeta.Result, err error) htmlmeta.Result {
	if errors.Is(err, errLimit) {
		res.Why = "limit"
	}
	return res
}

// AtHand reports whether some of the body can be read at once.
func (t *tee) AtHand() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept) > 0 || t.err != nil || !t.reading && t.here != nil && t.here()
}

// scanAtHand reads a head of what is at hand, and takes nothing of it. If ok is false
// that is not enough.
func (t *tee) scanAtHand(o htmlmeta.Options) (res htmlmeta.Result, ok bool) {
	b, ok := t.body.(interface {
		Peek() (beginning []byte, whole bool)
	})
	if !ok {
		return res, false
	}
	beginning, whole := b.Peek()
	if len(beginning) == 0 {
		return res, false
	}
	if o.ContentEncoding != "" && len(beginning) > firstCoded {
		if res, ok = scanHastily(&hasty{left: beginning[:firstCoded]}, o); ok {
			return res, true
		}
	}
	return scanHastily(&hasty{left: beginning, whole: whole}, o)
}

// firstCoded is how much of a coded body is tried alone at first, in bytes. Decoders give
// nothing until they have come to the end of a block or a window, which costs several times as
// much as to scan a head. Where it is not enough, an eighth of what is at hand is decoded twice.
const firstCoded = 512

func scanHastily(h *hasty, o htmlmeta.Options) (res htmlmeta.Result, ok bool) {
	res = outcome(htmlmeta.Scan(h, o))
	return res, res.Complete || !h.waits // a decoder may wait behind the head
}

// A hasty reader has the beginning of a body, and does not wait for the rest.
type hasty struct {
	left  []byte
	whole bool // there is no rest
	waits bool // since that was not enough
}

func (h *hasty) Read(p []byte) (n int, err error) {
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

// scan reads a head, some of which may have been read already.
func (t *tee) scan(o htmlmeta.Options) htmlmeta.Result {
	return outcome(htmlmeta.Scan(io.MultiReader(bytes.NewReader(t.snapshot()), scannerSide{t}), o))
}

// snapshot returns what has been read and not been taken by the client.
func (t *tee) snapshot() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept[:len(t.kept):len(t.kept)]
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
	res, _ := htmlmeta.Scan(bytes.NewReader(t.snapshot()), o)
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
			if err == nil && !t.reading && t.here != nil && t.here() {
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

// More reads behind what was at hand what else has come, and does not wait.
func (t *tee) More(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) > 0 || t.err != nil || t.reading {
		return 0, nil
	}
	n, err := readMore(t.body, p)
	t.err = err
	return n, err
}

func (t *tee) Close() error { return t.body.Close() }
