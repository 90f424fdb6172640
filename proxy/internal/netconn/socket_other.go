//go:build !unix

package netconn

// tryRead reads nothing: it would have to wait. That a connection was closed shows when it
// is used.
func tryRead(uintptr, []byte) (n int, nothing bool) { return 0, true }
