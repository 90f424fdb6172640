//go:build unix

package ca

import (
	"io/fs"
	"syscall"
)

func ownerIn(info fs.FileInfo) (owner, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{}, false
	}
	return owner{int(s.Uid), int(s.Gid)}, true
}
