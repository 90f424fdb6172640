//go:build !unix

package cli

// descriptorLimit returns how many files the process may have open, 0 if it is not known.
func descriptorLimit() int { return 0 }
