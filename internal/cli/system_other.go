//go:build !unix

package cli

import (
	"os"
	"os/exec"
)

func descriptorLimit() int { return 0 }

func foreground(*os.File) bool { return true }

func ownGroup(*exec.Cmd) {}
