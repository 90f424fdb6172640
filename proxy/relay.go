package proxy

import (
	"io"
	"sync"
	"time"

	"robotsgate/proxy/internal/netconn"
)

// afterHalf is how long one side of a tunnel is waited for in silence when the
// other has said its last.
const afterHalf = time.Minute

// A relay carries the bytes of a tunnel both ways. It ends when both sides have,
// when one breaks off, when neither has said anything for as long as idle, or when one
// has taken nothing for as long as silence: a client that vanishes without a word would
// else hold its tunnel for ever.
type relay struct {
	idle     time.Duration
	silence  time.Duration
	together bool // the end of one side is that of both

	vigil *vigil
	end   func()
}

// between carries until the end, and closes both. It returns the bytes sent to the
// client.
func (r *relay) between(client, origin io.ReadWriteCloser) (down int64) {
	r.end = func() {
		client.Close()
		origin.Close()
	}
	defer r.end()
	r.vigil = keepVigil(r.idle, r.end)
	defer r.vigil.stop()
	var wg sync.WaitGroup
	wg.Go(func() { r.carry(origin, client) })
	down = r.carry(client, origin)
	wg.Wait()
	return down
}

// carry copies one way. The end of that leaves the other way open; when it breaks
// off both connections are closed, since the side that is left may never speak.
func (r *relay) carry(to, from io.ReadWriteCloser) int64 {
	n, err := r.copy(to, from)
	if err != nil || r.together {
		r.end()
		return n
	}
	r.vigil.shorten(afterHalf)
	netconn.CloseWrite(to)
	return n
}

var relayBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (r *relay) copy(to io.Writer, from io.Reader) (n int64, err error) {
	buf := relayBuffers.Get().(*[32 << 10]byte)
	defer relayBuffers.Put(buf)
	limit := timeLimit{idle: r.silence, end: breakFunc(r.end)}
	defer limit.stop()
	for {
		got, err := from.Read(buf[:])
		if got > 0 {
			r.vigil.hold()
			limit.begin()
			written, werr := to.Write(buf[:got])
			limit.done()
			r.vigil.release()
			n += int64(written)
			if werr != nil {
				return n, werr
			}
		}
		switch {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}
