//go:build !linux

package e2e

// escapes is a program for Linux only.
func escapes() {}
