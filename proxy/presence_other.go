//go:build !linux

package proxy

import "syscall"

const canTellPeerLeft = false

func peerLeft(syscall.RawConn) (left, more bool) { return false, false }
