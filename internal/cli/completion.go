package cli

import (
	"strings"

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
	return printReport(s.Out, "completion."+shell, completionReport{completed(k.Model.Node), c.Shell == "zsh"})
}

// A completionReport is what the template of a script needs.
type completionReport struct {
	Commands []completedCommand
	Zsh      bool
}

// A completedCommand is a command with its options.
type completedCommand struct {
	Name, Help string
	Flags      []completedFlag
}

// A completedFlag is an option, such as --config.
type completedFlag struct {
	Name, Help string
	Short      string   // one letter; empty: there is none
	Value      bool     // it takes a value
	Values     []string // these only; none: any
}

// completed returns what can be completed below a node of the command table.
func completed(node *kong.Node) (all []completedCommand) {
	for _, command := range node.Children {
		if command.Hidden {
			continue
		}
		c := completedCommand{Name: command.Name, Help: command.Help, Flags: []completedFlag{{Name: "help", Short: "h", Help: "Show the help."}}}
		for _, flag := range command.Flags {
			c.Flags = append(c.Flags, completedFlagOf(flag))
		}
		all = append(all, c)
	}
	return all
}

func completedFlagOf(flag *kong.Flag) completedFlag {
	f := completedFlag{Name: flag.Name, Help: flag.Help, Value: !flag.IsBool()}
	if flag.Short != 0 {
		f.Short = string(flag.Short)
	}
	if flag.Enum != "" {
		f.Values = strings.Split(flag.Enum, ",")
	}
	return f
}
