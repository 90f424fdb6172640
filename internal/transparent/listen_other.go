//go:build !linux

package transparent

import (
	"errors"
	"net"
	"runtime"
)

// A Listener is for Linux only.
type Listener struct {
	net.Listener
	NoTProxy error
}

// Listen returns an error.
func Listen(string) (*Listener, error) {
	return nil, errors.New("this works on Linux only, and this is " + runtime.GOOS + ": remove the key")
}
