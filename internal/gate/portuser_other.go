//go:build !linux

package gate

func portUser(string) string { return "" }
