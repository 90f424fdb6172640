package cli

import (
	"cmp"
	"fmt"

	"robotsgate/internal/config"
)

// Validate checks a configuration.
type Validate struct {
	Config string `short:"c" placeholder:"FILE" help:"The same as FILE, as other commands take it."`
	File   string `arg:"" optional:"" name:"FILE" help:"The configuration to check."`
}

// Run reports every mistake with its line. It fails if there is any.
func (v *Validate) Run(s Streams) error {
	file := cmp.Or(v.File, v.Config)
	if file == "" {
		return fmt.Errorf("which file? robotsgate validate config.yaml")
	}
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	for _, w := range c.Warnings() {
		s.warn("%s", w)
	}
	if _, err := roots(c.Egress.CAFile); err != nil {
		return fmt.Errorf("egress.ca_file: %w", err)
	}
	if c.HTTPS.CACert != "" {
		if _, err := openCA(c, ""); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.Out, "%s is valid\n", file)
	return nil
}
