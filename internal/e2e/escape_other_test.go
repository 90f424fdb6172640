//go:build !linux

package e2e

// escapes is for Linux only.
func escapes() {}
