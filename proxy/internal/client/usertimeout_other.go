//go:build !linux

package client

import (
	"net"
	"time"
)

// setUserTimeout does nothing: only Linux has it.
func setUserTimeout(net.Conn, time.Duration) error { return nil }
