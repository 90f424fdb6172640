//go:build !race

package gatetest

// race reports whether the race detector is on.
const race = false
