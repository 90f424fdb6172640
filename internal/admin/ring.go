package admin

import "iter"

// A ring has a value for each of the last periods, such as minutes since 1970.
type ring[T any] []struct {
	period int64
	value  T
}

// newRing returns a ring of n periods without values.
func newRing[T any](n int) ring[T] { return make(ring[T], n) }

// of returns the value of a period, the zero value at first. The value of n periods before it is lost.
func (r ring[T]) of(period int64) *T {
	slot := &r[period%int64(len(r))]
	if slot.period != period {
		var none T
		slot.period, slot.value = period, none
	}
	return &slot.value
}

// until returns the n periods up to one, with their values.
func (r ring[T]) until(last int64, n int) iter.Seq2[int64, T] {
	return func(yield func(int64, T) bool) {
		for period := last - int64(n) + 1; period <= last; period++ {
			var value T
			if period >= 0 && r[period%int64(len(r))].period == period {
				value = r[period%int64(len(r))].value
			}
			if !yield(period, value) {
				return
			}
		}
	}
}
