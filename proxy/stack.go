package proxy

import "runtime"

// growStack makes room on a new goroutine's stack at once, where there is little on it
// that has to be moved and looked through. HTTP/2 has a goroutine for each request, whose
// stack would else grow in the middle of it, with a dozen calls on it: that takes 4 µs.
//
//go:noinline
func growStack() {
	var room [9 << 10]byte // it takes 16 KiB: built with a profile, calls need more than 8
	runtime.KeepAlive(&room)
}
