// Robotsgate is a forward HTTP proxy that enforces robots rules on outbound
// traffic.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"robotsgate/internal/cli"
)

// commands is the command table.
type commands struct {
	Serve    cli.Serve    `cmd:"" default:"withargs" help:"Run the gate (the default)."`
	Run      cli.Run      `cmd:"" help:"Run one command behind a gate of its own."`
	Check    cli.Check    `cmd:"" help:"Decide about URLs without sending the requests."`
	Tags     cli.Tags     `cmd:"" help:"Print the robots-tag rules that bind a crawler."`
	Lint     cli.Lint     `cmd:"" help:"Report the lines of a robots.txt that do not do what they seem to."`
	Env      cli.Env      `cmd:"" help:"Print the variables that lead clients through the gate."`
	CA       cli.CA       `cmd:"" name:"ca" help:"Print the CA certificate that clients must trust."`
	Validate cli.Validate `cmd:"" help:"Check a configuration."`
	Audit    cli.Audit    `cmd:"" help:"Sum up, replay or verify audit logs."`
	Doctor   cli.Doctor   `cmd:"" help:"Try whether the clients of this shell go through the gate and trust it."`
	History  cli.History  `cmd:"" help:"Tell how an origin's robots.txt has changed."`
	Version  cli.Version  `cmd:"" help:"Print version, commit and Go version."`

	Versioned versionFlag `name:"version" help:"The same as the command version."`
}

// versionFlag is what people try first.
type versionFlag bool

// BeforeReset is called where the flag is given, before anything else is looked at.
func (versionFlag) BeforeReset(app *kong.Kong, s cli.Streams) error {
	if err := (cli.Version{}).Run(s); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run carries out one command line and returns the process's exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	streams := cli.Streams{In: stdin, Out: stdout, Err: stderr}
	// kong ends the process when it has printed help; here that is a return.
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case exitStatus:
			status = int(cause)
		default:
			panic(cause)
		}
	}()
	parser, err := kong.New(&commands{},
		kong.Name("robotsgate"),
		kong.Description("A forward HTTP proxy that enforces robots rules on outbound traffic."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exitStatus(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams),
		kong.Help(help),
		kong.KindMapper(reflect.String, kong.MapperFunc(asGiven)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return streams.Status(err)
	}
	command, err := parser.Parse(args)
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		return streams.Status(fmt.Errorf("%w; robotsgate --help shows what there is", parse))
	}
	if err != nil {
		return streams.Status(err)
	}
	return streams.Status(command.Run())
}

// asGiven takes an argument's bytes as they are. Kong sends them through JSON, which
// puts another character where they are not UTF-8: in a URL that is to be judged, or
// a command's own arguments.
func asGiven(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	target.SetString(token.String())
	return nil
}

// help prints what kong does, with the options where run must have them: what
// follows its command is the command's.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	out := ctx.Stdout
	defer func() { ctx.Stdout = out }()
	var text bytes.Buffer
	ctx.Stdout = &text
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	usage, rest, _ := strings.Cut(text.String(), "\n")
	if before, ok := strings.CutSuffix(usage, " [flags]"); ok {
		if words := strings.SplitN(before, " ", 4); len(words) == 4 { // Usage: robotsgate COMMAND ARGUMENTS
			usage = strings.Join(slices.Insert(words, 3, "[flags]"), " ")
		}
	}
	_, err := fmt.Fprintf(out, "%s\n%s", usage, rest)
	return err
}

// exitStatus is what kong wants to end the process with.
type exitStatus int
