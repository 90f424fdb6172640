package body

import (
	"cmp"
	"io"
	"sync"
	"time"

	"robotsgate/proxy/internal/client"
)

// afterHalf is how long a tunnel may be silent when one of its sides has ended.
const afterHalf = time.Minute

// A Relay carries the bytes of a tunnel both ways. It ends when both sides have ended, when
// one side breaks off, when no side has sent anything for Idle, or when one side has read
// nothing for Silence: a client that vanishes would otherwise hold its tunnel for ever.
type Relay struct {
	Idle     time.Duration
	Silence  time.Duration
	Together bool // the end of one side ends the other

	idle IdleTimer
	end  func()
}

// Between carries until the end, and closes both connections. It returns the bytes sent to
// the client.
func (r *Relay) Between(client, origin io.ReadWriteCloser) (down int64) {
	r.end = func() {
		client.Close()
		origin.Close()
	}
	defer r.end()
	r.idle.Init(r.Idle, r.end)
	r.idle.Start()
	defer r.idle.End()
	var wg sync.WaitGroup
	wg.Go(func() { r.carry(origin, client) })
	down = r.carry(client, origin)
	wg.Wait()
	return down
}

var relayBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// carry copies one way, and returns the number of bytes. The end of the one leaves the other way
// open. When it breaks off both connections are closed, since the other side may never send
// anything.
func (r *Relay) carry(to, from io.ReadWriteCloser) (n int64) {
	buf := relayBuffers.Get().(*[32 << 10]byte)
	defer relayBuffers.Put(buf)
	var writing IdleTimer
	writing.Init(r.Silence, r.end)
	defer writing.End()
	for {
		got, err := from.Read(buf[:])
		if got > 0 {
			r.idle.Pause() // the other side may read slowly
			writing.Start()
			written, werr := to.Write(buf[:got])
			writing.Pause()
			r.idle.Start()
			n += int64(written)
			err = cmp.Or(werr, err)
		}
		switch {
		case err == nil:
		case err != io.EOF || r.Together:
			r.end()
			return n
		default:
			r.idle.Shorten(afterHalf)
			client.CloseWrite(to)
			return n
		}
	}
}
