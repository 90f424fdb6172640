package cli

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"robotsgate/internal/confine"
	"robotsgate/internal/console"
	"robotsgate/internal/doctor"
)

// Commands is the command table.
type Commands struct {
	Serve    Serve    `cmd:"" help:"Run the gate (the default)."`
	Run      Run      `cmd:"" help:"Run one command behind a gate of its own."`
	Demo     Demo     `cmd:"" help:"Run a gate with a sample site, without a network."`
	Check    Check    `cmd:"" help:"Decide about URLs without sending the requests."`
	Tags     Tags     `cmd:"" help:"Print the robots-tag rules that bind a crawler."`
	Usage    Usage    `cmd:"" help:"Print what the content of a URL may be used for."`
	MCP      MCP      `cmd:"" name:"mcp" help:"Answer a model's questions about robots rules, by the Model Context Protocol."`
	Env      Env      `cmd:"" help:"Print the environment variables that make clients use the gate."`
	CA       CA       `cmd:"" name:"ca" help:"Print the CA certificate that clients must trust."`
	Validate Validate `cmd:"" help:"Check a configuration."`
	Keys     Keys     `cmd:"" help:"Make keys for signed requests, and print the directory that publishes them."`
	Audit    Audit    `cmd:"" help:"Summarize, replay or verify audit logs."`
	Doctor   Doctor   `cmd:"" help:"Check that this shell's clients use the gate and trust its CA."`
	History  History  `cmd:"" help:"Show how an origin's robots.txt has changed."`
	Version  Version  `cmd:"" help:"Print version, commit and Go version."`
	Help     Help     `cmd:"" help:"Show the help of a command."`

	HashPassword HashPassword `cmd:"" name:"hash-password" help:"Print the hash of a password for the configuration."`

	Completion Completion `cmd:"" help:"Print a script that completes commands and options in a shell."`

	Versioned kong.VersionFlag `name:"version" help:"The same as the command version."`
}

// Help shows the help of a command. Main reads its arguments as those of --help.
type Help struct {
	Command string `arg:"" optional:"" name:"COMMAND" help:"The command; without one, all commands are listed."`
}

// texts has a file for each command, and one for the program, with what --help shows below its first
// line.
//
//go:embed help/*.txt
var texts embed.FS

// Main runs the command of the process's arguments and ends the process.
func Main() {
	if confine.IsStub(os.Args) {
		os.Exit(confine.Stub())
	}
	streams := console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if len(os.Args) > 1 && os.Args[1] == doctor.AttemptCommand {
		os.Exit(streams.Status(doctor.Attempt(os.Args[2:], streams)))
	}
	parser := kong.Must(&Commands{},
		kong.Name("robotsgate"),
		kong.Description("A forward HTTP proxy that enforces robots rules on outbound traffic."),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
		kong.Bind(streams),
		kong.Vars{"version": versionLine()},
		kong.Help(help),
		kong.KindMapper(reflect.String, kong.MapperFunc(asGiven)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	for _, node := range append(parser.Model.Children, parser.Model.Node) {
		text, err := texts.ReadFile("help/" + node.Name + ".txt")
		if err != nil {
			panic(err)
		}
		node.Detail = string(text)
		if node != parser.Model.Node {
			for _, part := range node.Children { // such as keys new
				part.Detail = node.Detail
			}
		}
	}
	command, err := parser.Parse(arguments(os.Args[1:]))
	if err != nil {
		err = usageError(err)
	} else {
		err = command.Run()
	}
	os.Exit(streams.Status(err))
}

// arguments returns the arguments with a command: without one they are those of serve. Kong has
// default commands too, but would then read a misspelt command as an argument of serve.
func arguments(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"serve"}
	case args[0] == "help":
		return append(args[1:], "--help")
	case strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "--help", "--version"}, args[0]):
		return append([]string{"serve"}, args...)
	}
	return args
}

// usageError returns an error of the command line with what to do about it.
func usageError(err error) error {
	line := "robotsgate"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context.Selected() != nil {
		line = parse.Context.Selected().FullPath()
	}
	return fmt.Errorf("%w; %s --help shows what there is", err, line)
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

// usageLine is the usage line of a command, as kong prints it.
var usageLine = regexp.MustCompile(`^(Usage: robotsgate [a-z][a-z-]*(?: [a-z][a-z-]*)?)(.*) \[flags\]`)

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
	_, err := out.Write(usageLine.ReplaceAll(text.Bytes(), []byte("$1 [flags]$2")))
	return err
}
