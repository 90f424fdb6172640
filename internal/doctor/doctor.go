// Package doctor checks that a shell's clients use a gate and trust its CA, and what the gate's configuration names: the
// store of its fleet and the keys of its crawlers.
package doctor

// Where to change what.
//
//	what is checked of a shell:
//		shell.go
//	the requests through the gate:
//		requests.go
//	what doctor --confine prints:
//		confine.go

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/fleet"
	"robotsgate/internal/gate"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/logtext"
)

// AttemptCommand is a command for processes of doctor --confine. It is in no help.
const AttemptCommand = "confine-attempt"

// A finding is one line of the report, with what to do about it.
type finding struct {
	subject string
	verdict verdict
	text    string
	advice  []string
}

// A verdict is the result of one check, as the report shows it.
type verdict string

const (
	passed  verdict = "ok"
	failed  verdict = "no"
	unknown verdict = "--" // does not fail the command
)

func fault(subject, text string, advice ...string) finding {
	return finding{subject, failed, text, advice}
}

// Run checks this shell and the gate of a configuration, and prints the findings.
func Run(ctx context.Context, s console.Streams, c *gate.Config) error {
	dir, err := gate.DataDir(c)
	if err != nil {
		return err
	}
	e := &diagnosis{config: c, dir: dir}
	findings := []finding{e.findGate(ctx)}
	if e.gate.err == nil {
		findings = append(findings, e.certificate(), e.proxyVariables(ctx), e.trustVariables(), e.request(ctx))
		findings = append(findings, e.curl(ctx)...)
	} else {
		findings = append(findings, e.proxyVariables(ctx))
	}
	for _, w := range c.Warnings() {
		findings = append(findings, finding{"configuration", unknown, w.Error(), nil})
	}
	findings = append(findings, checkFleet(ctx, c)...)
	findings = append(findings, checkKeys(c)...)
	for i := range findings {
		findings[i].text = logtext.Printable(findings[i].text)
	}
	return printFindings(s, findings, nil)
}

// checkFleet checks the store of the fleet, if the configuration names one.
func checkFleet(ctx context.Context, c *gate.Config) (all []finding) {
	if !c.Fleet.On() {
		return nil
	}
	var err error
	o := fleet.Options{Settings: fleet.Settings{Config: c.Fleet}}
	if o.Key, err = c.Fleet.ReadKey(); err != nil {
		return []finding{fault("fleet key", err.Error())}
	}
	if o.Roots, err = c.Fleet.ReadRoots(); err != nil {
		return []finding{fault("fleet store", err.Error())}
	}
	for _, f := range fleet.Check(ctx, o) {
		if f.OK {
			all = append(all, finding{subject: "fleet " + f.Subject, verdict: passed, text: f.Text})
			continue
		}
		all = append(all, fault("fleet "+f.Subject, f.Text, f.Advice))
	}
	return all
}

// checkKeys has a line for the key of each crawler with signed requests.
func checkKeys(c *gate.Config) (all []finding) {
	for _, crawler := range c.Crawlers {
		key, file := crawler.Sign.Key(), crawler.Sign.KeyFile
		if key == nil {
			continue
		}
		f := finding{"signing key", passed, fmt.Sprintf("%s, of %s: %s", filepath.Base(file), crawler.Name, key.ID()), nil}
		if mode, exposed := keyfile.Exposed(file); exposed {
			f.verdict, f.advice = unknown, []string{"chmod 600 " + clientenv.QuoteShell(file)}
			f.text += fmt.Sprintf("; the group or others may read it (mode %04o)", mode)
		}
		all = append(all, f)
	}
	return all
}

// printFindings prints the findings in columns, each verdict as it is or as words has it. A failed check is exit status 1.
func printFindings(s console.Streams, findings []finding, words map[verdict]string) error {
	out := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	var status error
	for _, f := range findings {
		fmt.Fprintf(out, "%s\t%s\t%s\n", f.subject, cmp.Or(words[f.verdict], string(f.verdict)), f.text)
		for _, line := range f.advice {
			fmt.Fprintf(out, "\t\t%s\n", line)
		}
		if f.verdict == failed {
			status = console.Exit(1)
		}
	}
	return cmp.Or(out.Flush(), status)
}

// named returns a command with the -c that has named its configuration, if one has.
func named(c *gate.Config, command string) string {
	if c.File() == "" {
		return command
	}
	return command + " -c " + clientenv.QuoteShell(c.File())
}
