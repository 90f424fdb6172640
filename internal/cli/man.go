package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// Man prints the manual page, for packages. Its text is that of --help.
type Man struct{}

// Run prints the page.
func (Man) Run(k *kong.Kong, s Streams) error {
	var commands []manCommand
	for _, command := range k.Model.Node.Children {
		if command.Hidden {
			continue
		}
		arguments := strings.TrimSuffix(strings.TrimPrefix(command.Summary(), command.Name), " [flags]")
		c := manCommand{Summary: command.Name + " [flags]" + arguments, Help: command.Help}
		text, example, _ := strings.Cut("\n"+command.Detail, "\nExample:\n")
		c.Paragraphs = strings.Split(strings.TrimSpace(text), "\n\n")
		c.Example = strings.TrimRight(example, "\n")
		for _, flag := range command.Flags {
			c.Flags = append(c.Flags, manFlag{flag.String(), flag.Help})
		}
		commands = append(commands, c)
	}
	return printReport(s.Out, "man", commands)
}

// A manCommand is a command in the manual page.
type manCommand struct {
	Summary, Help string
	Paragraphs    []string
	Flags         []manFlag
	Example       string
}

type manFlag struct{ Name, Help string }

// roff escapes text for roff, where a line that begins with a dot is a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			b.WriteString(`\&`)
		}
		b.WriteString(line)
	}
	return b.String()
}
