package cli

import (
	"strings"

	"robotsgate/internal/console"

	"github.com/alecthomas/kong"
)

// Man prints the manual page, for packages. Its text is that of --help.
type Man struct{}

// Run prints the page.
func (Man) Run(k *kong.Kong, s console.Streams) error {
	page := manPage{Program: manCommandOf(k.Model.Node)}
	for _, command := range k.Model.Node.Children {
		if !command.Hidden {
			page.Commands = append(page.Commands, manCommandOf(command))
			for _, part := range command.Children {
				part.Detail = "" // that of the command
				page.Commands = append(page.Commands, manCommandOf(part))
			}
		}
	}
	return printReport(s.Out, "man", page)
}

func manCommandOf(node *kong.Node) manCommand {
	arguments := strings.TrimSuffix(strings.TrimPrefix(node.Summary(), node.Path()), " [flags]")
	c := manCommand{Summary: node.Path() + " [flags]" + arguments, Help: node.Help, Flags: node.Flags}
	text, example, _ := strings.Cut("\n"+node.Detail, "\nExample:\n")
	c.Paragraphs = strings.Split(strings.TrimSpace(text), "\n\n")
	c.Example = strings.TrimRight(example, "\n")
	return c
}

// A manPage is the manual page.
type manPage struct {
	Program  manCommand
	Commands []manCommand
}

// A manCommand is the program or a command in the manual page.
type manCommand struct {
	Summary, Help string
	Paragraphs    []string
	Flags         []*kong.Flag
	Example       string
}

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
