//go:build !unix

package store

import "io/fs"

// allocated returns the bytes that a file takes on disk, if the disk has blocks of 4 KiB.
func allocated(info fs.FileInfo) int64 { return (info.Size() + 4095) &^ 4095 }
