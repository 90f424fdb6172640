//go:build !linux || !(amd64 || arm64)

package confine

import (
	"errors"
	"runtime"
)

// IsStub reports whether the process was started as a stub.
func IsStub([]string) bool { return false }

// Stub is for Linux only.
func Stub() int { return 125 }

// Run is for Linux only.
func Run(Options, func(Listeners) (Command, error)) (int, error) {
	return 0, &StepError{
		Step: "confine a command", Err: errors.New("this needs Linux on amd64 or arm64, and the system is " + runtime.GOOS + " on " + runtime.GOARCH),
		Remedy: "Run it in a Linux container or virtual machine, such as Docker, Podman or Lima, and robotsgate in there",
	}
}
