//go:build !unix

package gate

func descriptorLimit() int { return 0 }
