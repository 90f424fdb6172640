// Package body carries the bodies of requests and responses: the tee that lets a page's
// head be scanned, uploads, and the relays of tunnels, each with its time limits.
package body

import "io"

// Ready is a body that knows which of its bytes have arrived already. That spares a small
// response a second write, and a page's head a goroutine.
type Ready interface {
	io.ReadCloser
	// AtHand reports whether Read returns some bytes without waiting.
	AtHand() bool
	// Peek returns what is at hand, until the next Read, and whether that is all of it.
	Peek() (beginning []byte, whole bool)
	// ReadArrived reads behind what was at hand what else has arrived. It does not wait:
	// 0 and nil mean that nothing has.
	ReadArrived(p []byte) (int, error)
}

// AsReady returns the body itself if it is Ready, else one of which nothing is ever at hand.
func AsReady(b io.ReadCloser) Ready {
	if r, ok := b.(Ready); ok {
		return r
	}
	return notReady{b}
}

type notReady struct{ io.ReadCloser }

func (notReady) AtHand() bool                    { return false }
func (notReady) Peek() ([]byte, bool)            { return nil, false }
func (notReady) ReadArrived([]byte) (int, error) { return 0, nil }
