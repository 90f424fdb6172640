package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Commands is the command table.
type Commands struct {
	Serve    Serve    `cmd:"" default:"withargs" help:"Run the gate (the default)."`
	Run      Run      `cmd:"" help:"Run one command behind a gate of its own."`
	Check    Check    `cmd:"" help:"Decide about URLs without sending the requests."`
	Tags     Tags     `cmd:"" help:"Print the robots-tag rules that bind a crawler."`
	Lint     Lint     `cmd:"" help:"Report the lines of a robots.txt that do not do what they seem to."`
	Env      Env      `cmd:"" help:"Print the environment variables that make clients use the gate."`
	CA       CA       `cmd:"" name:"ca" help:"Print the CA certificate that clients must trust."`
	Validate Validate `cmd:"" help:"Check a configuration."`
	Audit    Audit    `cmd:"" help:"Summarize, replay or verify audit logs."`
	Doctor   Doctor   `cmd:"" help:"Check that this shell's clients use the gate and trust its CA."`
	History  History  `cmd:"" help:"Show how an origin's robots.txt has changed."`
	Version  Version  `cmd:"" help:"Print version, commit and Go version."`

	Versioned versionFlag `name:"version" help:"The same as the command version."`
}

// versionFlag is the flag --version.
type versionFlag bool

// BeforeReset runs if the flag is given, before kong checks the other arguments.
func (versionFlag) BeforeReset(app *kong.Kong, s Streams) error {
	if err := (Version{}).Run(s); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}

// Main runs the command of the process's arguments and ends the process.
func Main() {
	os.Exit(runCommand(context.Background(), os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// runCommand runs one command line and returns the process's exit status.
func runCommand(ctx context.Context, args []string, streams Streams) (status int) {
	// kong ends the process when it has printed help; here that is a return.
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case Exit:
			status = int(cause)
		default:
			panic(cause)
		}
	}()
	parser, err := kong.New(&Commands{},
		kong.Name("robotsgate"),
		kong.Description("A forward HTTP proxy that enforces robots rules on outbound traffic."),
		kong.Writers(streams.Out, streams.Err),
		kong.Exit(func(code int) { panic(Exit(code)) }),
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

// help prints kong's help with [flags] before the arguments in the usage line. For run the flags
// must stand there: everything after its command is an argument of that command.
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
