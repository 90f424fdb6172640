package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// afterHalf is how long one side of a tunnel is waited for in silence when the
// other has said its last.
const afterHalf = time.Minute

// A relay carries the bytes of a tunnel both ways. It ends when both sides have,
// when one breaks off, or when neither has said anything for as long as idle: a
// client that vanishes without a word would else hold its tunnel for ever.
type relay struct {
	idle time.Duration
	last atomic.Int64 // when a byte was last carried, in Unix nanoseconds
	half atomic.Bool  // one side has ended
}

// between carries until the end. It returns the bytes sent to the client.
func (r *relay) between(client, origin net.Conn) (down int64) {
	r.last.Store(time.Now().UnixNano())
	var wg sync.WaitGroup
	wg.Go(func() { r.carry(origin, client) })
	down = r.carry(client, origin)
	wg.Wait()
	return down
}

// carry copies one way. The end of that leaves the other way open; when it breaks
// off both connections are closed, since the side that is left may never speak.
func (r *relay) carry(to, from net.Conn) int64 {
	n, err := r.copy(to, from)
	if err != nil {
		to.Close()
		from.Close()
		return n
	}
	r.half.Store(true)
	// Who waits for the other side now waits with less patience.
	_ = to.SetReadDeadline(time.Now().Add(r.patience()))
	closeWrite(to)
	return n
}

func (r *relay) copy(to, from net.Conn) (n int64, err error) {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	for {
		patience := r.patience()
		_ = from.SetReadDeadline(time.Now().Add(patience))
		got, err := from.Read(buf[:])
		if got > 0 {
			r.last.Store(time.Now().UnixNano())
			_ = to.SetWriteDeadline(time.Now().Add(patience))
			written, werr := to.Write(buf[:got])
			n += int64(written)
			if werr != nil {
				return n, werr
			}
		}
		switch {
		case err == io.EOF:
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, r.last.Load())) < patience:
			// The other way is busy.
		case err != nil:
			return n, err
		}
	}
}

func (r *relay) patience() time.Duration {
	if r.half.Load() {
		return min(r.idle, afterHalf)
	}
	return r.idle
}
