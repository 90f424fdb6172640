//go:build linux && (amd64 || arm64)

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"robotsgate/internal/confine/attempts"
	"robotsgate/internal/console"
)

// Attempt does what a process of doctor --confine has to do inside.
func Attempt(args []string, s console.Streams) error {
	return attempts.Main(attempts.All(), args, s.Out)
}

// TryConfinement makes the escape attempts behind run --confine, and prints what became of them.
func TryConfinement(ctx context.Context, s console.Streams) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	outside, err := attempts.Start([]string{program, AttemptCommand})
	if err != nil {
		return fmt.Errorf("start the targets of the attempts: %w", err)
	}
	defer outside.Close()
	file := filepath.Join(outside.World.Dir, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "data_dir: %s/data\nlog: {level: error}\n", outside.World.Dir), 0o600); err != nil {
		return err
	}
	cmd := outside.Command(ctx, program, "run", "--confine", "-c", file, "--")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	reports, err := cmd.Output()
	if err != nil {
		_, _ = stderr.WriteTo(s.Err)
		if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 125 {
			return console.Exit(125)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return fmt.Errorf("robotsgate run --confine: %w", err)
	}
	results, err := outside.Results(attempts.All(), reports)
	if err != nil {
		return err
	}
	findings, count := []finding{}, map[verdict]int{}
	for _, r := range results {
		f := finding{subject: r.Name, verdict: passed, text: r.Tries}
		switch {
		case r.Out:
			f.verdict, f.advice = failed, []string{"report this as a security bug, as SECURITY.md says"}
		case r.Skipped != "":
			f.verdict, f.advice = unknown, []string{"not tried: " + r.Skipped}
		}
		count[f.verdict]++
		findings = append(findings, f)
	}
	status := printFindings(s, findings, map[verdict]string{passed: "stopped", failed: "GOT OUT", unknown: "not tried"})
	fmt.Fprintf(s.Out, "%s: %d stopped, %d got out, %d not tried\n", console.Plural(len(findings), "attempt"), count[passed], count[failed], count[unknown])
	return status
}
