package admin

import (
	"fmt"
	"time"
)

// A chart shows the last hour as bars, one a minute, in an area of 600 by 100. The denials are
// at the bottom, where small numbers can be seen and compared.
type chart struct {
	Max  uint64 // the requests that the height of the area stands for
	Bars []bar
	Peak uint64
	When time.Time // of Peak
}

type bar struct {
	Minute
	X     int
	Parts []part
}

type part struct {
	Class     string
	Y, Height string
}

// minHeight is the height of a part that would be too small to see.
const minHeight = 1.5

func draw(minutes []Minute) (c chart) {
	for _, m := range minutes {
		n := m.Allowed + m.Denied + m.Reported
		if n > c.Peak {
			c.Peak, c.When = n, m.Begin
		}
	}
	c.Max = roundUp(c.Peak)
	for i, m := range minutes {
		b := bar{Minute: m, X: i * 10}
		top := 100.0
		for _, p := range []struct {
			class string
			n     uint64
		}{{"denied", m.Denied}, {"reported", m.Reported}, {"allowed", m.Allowed}} {
			if p.n == 0 {
				continue
			}
			height := min(max(100*float64(p.n)/float64(c.Max), minHeight), top)
			top -= height
			b.Parts = append(b.Parts, part{p.class, fmt.Sprintf("%.2f", top), fmt.Sprintf("%.2f", height)})
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// roundUp returns the next number that is easy to read, as is its half.
func roundUp(n uint64) uint64 {
	for ten := uint64(1); ; ten *= 10 {
		for _, m := range []uint64{2, 4, 6, 8, 10} {
			if m*ten >= n || m*ten > 1<<60 {
				return m * ten
			}
		}
	}
}

// Half returns the requests that half the height stands for.
func (c chart) Half() uint64 { return c.Max / 2 }
