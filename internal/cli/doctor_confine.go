//go:build linux && (amd64 || arm64)

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"robotsgate/internal/confine/attempts"
)

// attemptCommand is a command for processes of doctor --confine, inside and outside. It is in no help.
const attemptCommand = "confine-attempt"

// attempt does what such a process has to do.
func attempt(args []string, s Streams) error { return attempts.Main(args, s.In, s.Out) }

// tryConfinement makes the escape attempts behind run --confine, and prints what became of them.
func (d *Doctor) tryConfinement(ctx context.Context, s Streams) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	outside, err := attempts.Start(attempts.Options{Self: []string{program, attemptCommand}, UID: os.Getuid()})
	if err != nil {
		return fmt.Errorf("start the targets of the attempts: %w", err)
	}
	defer outside.Close()
	file := filepath.Join(outside.World.Dir, "config.yaml")
	if err := os.WriteFile(file, []byte(outside.Config()), 0o600); err != nil {
		return err
	}
	var stderr bytes.Buffer
	results, err := outside.Try(ctx, []string{program, "run", "--confine", "-c", file, "--ports", outside.Ports(), "--"}, withoutProxies(os.Environ()), &stderr)
	if err != nil {
		_, _ = stderr.WriteTo(s.Err)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 125 {
			return Exit(125)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return fmt.Errorf("robotsgate run --confine: %w", err)
	}
	findings := confinementFindings(results)
	if d.JSON {
		return encodeFindings(s, findings)
	}
	return printConfinement(s, findings)
}

// withoutProxies leaves out the proxy variables: the gate of the attempts has no parent proxy.
func withoutProxies(environ []string) (rest []string) {
	for _, v := range environ {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			rest = append(rest, v)
		}
	}
	return rest
}

func confinementFindings(results []attempts.Result) (findings []finding) {
	for _, r := range results {
		f := finding{subject: r.Name, verdict: passed, text: r.Tries}
		switch {
		case r.Out:
			f.verdict, f.advice = failed, []string{"report this as a security bug, as SECURITY.md says"}
		case r.Skipped != "":
			f.verdict, f.advice = unknown, []string{"not tried: " + r.Skipped}
		}
		findings = append(findings, f)
	}
	return findings
}

// printConfinement prints a table of the attempts and a summary.
func printConfinement(s Streams, findings []finding) error {
	words := map[verdict]string{passed: "stopped", failed: "GOT OUT", unknown: "not tried"}
	count := map[verdict]int{}
	out := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		count[f.verdict]++
		fmt.Fprintf(out, "%s\t%s\t%s\n", f.subject, words[f.verdict], f.text)
		for _, line := range f.advice {
			fmt.Fprintf(out, "\t\t%s\n", line)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s: %d stopped, %d got out, %d not tried\n", plural(len(findings), "attempt"), count[passed], count[failed], count[unknown])
	return statusOf(findings)
}
