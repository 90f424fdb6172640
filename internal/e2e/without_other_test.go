//go:build !linux

package e2e

// without is for Linux only.
func without() {}
