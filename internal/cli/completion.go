package cli

import (
	"slices"

	"robotsgate/internal/console"

	"github.com/alecthomas/kong"
)

// Completion prints a script by which a shell completes commands and options.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" name:"SHELL" help:"bash, zsh or fish."`
}

// Run prints the script, which is made from the command table.
func (c *Completion) Run(k *kong.Kong, s console.Streams) error {
	shell := c.Shell
	if shell == "zsh" {
		shell = "bash" // zsh can run functions for bash
	}
	commands := slices.DeleteFunc(slices.Clone(k.Model.Children), func(n *kong.Node) bool { return n.Hidden })
	return printReport(s.Out, "completion."+shell, struct {
		Commands []*kong.Node
		Zsh      bool
	}{commands, c.Shell == "zsh"})
}
