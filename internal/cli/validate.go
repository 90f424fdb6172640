package cli

import (
	"cmp"
	"fmt"
	"os"

	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// Validate checks a configuration.
type Validate struct {
	Config string `short:"c" placeholder:"FILE" help:"The same as FILE, as other commands take it."`
	File   string `arg:"" optional:"" name:"FILE" help:"The configuration to check; - is standard input."`
}

const stdin = "standard input"

// Run reports every mistake with its line. It fails if there is any.
func (v *Validate) Run(s console.Streams) error {
	file := cmp.Or(v.File, v.Config)
	if file == "" {
		return fmt.Errorf("which file? robotsgate validate config.yaml")
	}
	c, err := v.check(file, s)
	if file == "-" {
		file = stdin
	}
	if err != nil {
		return err
	}
	for _, w := range c.Warnings() {
		s.Warn("%s", w)
	}
	fmt.Fprintf(s.Out, "%s is valid\n", file)
	return nil
}

// check reads a configuration and the files that it names.
func (v *Validate) check(file string, s console.Streams) (c *gate.Config, err error) {
	if file == "-" {
		c, err = gate.ReadConfig(stdin, s.In, os.LookupEnv)
	} else {
		c, err = gate.LoadConfig(file)
	}
	if err != nil {
		return nil, err
	}
	if _, err := gate.Roots(c); err != nil {
		return c, err
	}
	if c.HTTPS.CACert != "" {
		_, err = gate.OpenCA(c, "")
	}
	return c, err
}
