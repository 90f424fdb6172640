//go:build !unix

package cli

// descriptorLimit returns how many files the process may have open, 0 if that can't be told.
func descriptorLimit() int { return 0 }
