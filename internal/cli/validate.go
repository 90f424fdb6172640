package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"robotsgate/internal/console"
	"robotsgate/internal/field"
	"robotsgate/internal/gate"
)

// Validate checks a configuration.
type Validate struct {
	Config string `short:"c" placeholder:"FILE" help:"The same as FILE, as other commands take it."`
	JSON   bool   `help:"Print JSON."`
	File   string `arg:"" optional:"" name:"FILE" help:"The configuration to check; - is standard input."`
}

const stdin = "standard input"

// A validation is the result of Validate in JSON.
type validation struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Mistakes []field.Mistake `json:"mistakes"`
	Warnings []field.Mistake `json:"warnings"`
}

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
	if v.JSON {
		return v.print(s, file, c, err)
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

// print prints the result as JSON.
func (v *Validate) print(s console.Streams, file string, c *gate.Config, err error) error {
	r := validation{File: file, Valid: err == nil, Mistakes: []field.Mistake{}, Warnings: []field.Mistake{}}
	if mistakes, ok := errors.AsType[field.Errors](err); ok {
		r.Mistakes = mistakes
	} else if err != nil {
		r.Mistakes = append(r.Mistakes, field.Mistake{Text: err.Error()})
	}
	if c != nil {
		r.Warnings = append(r.Warnings, c.Warnings()...)
	}
	if err := console.JSON(s.Out, r); err != nil {
		return err
	}
	if err != nil {
		return console.Exit(2)
	}
	return nil
}
