package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/confine"
	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

// Confinement are the options of run that confine its command.
type Confinement struct {
	Confine bool     `help:"Let CMD use the gate as its only network, with or without variables (Linux)."`
	Reach   []string `sep:"none" placeholder:"HOST:PORT|unix:PATH" help:"With --confine: a destination that bypasses the gate. May be given several times."`
	Ports   *string  `placeholder:"80,443" help:"With --confine: the ports on which connections reach the gate."`
	KeepFD  []int    `name:"keep-fd" placeholder:"N" help:"With --confine: a descriptor that CMD gets too. May be given several times."`
}

// given reports whether there is an option that only --confine has a use for.
func (x *Confinement) given() bool { return len(x.Reach) > 0 || x.Ports != nil || len(x.KeepFD) > 0 }

// options reads the options.
func (x *Confinement) options() (o confine.Options, err error) {
	if x.Ports != nil {
		if o.Ports, err = confine.ParsePorts(*x.Ports); err != nil {
			return o, fmt.Errorf("--ports: %w", err)
		}
	}
	for _, text := range x.Reach {
		r, err := confine.ParseReach(text)
		if err != nil {
			return o, fmt.Errorf("--reach: %w", err)
		}
		o.Reach = append(o.Reach, r)
	}
	o.Keep = x.KeepFD
	return o, nil
}

// confined is the [starter] of a command for which a gate is the only network.
func (r *Run) confined(ctx context.Context, s console.Streams, c *gate.Config, o gate.Options, command []string) (status int, causes []string, err error) {
	options, err := r.options()
	if err != nil {
		return 0, nil, err
	}
	status, err = confine.Run(options, func(l confine.Listeners) (confine.Command, error) {
		o.Listener, o.Transparent = l.Proxy, l.Transparent
		g, err := gate.New(c, o)
		if err != nil {
			return confine.Command{}, err
		}
		// The gate decides by files in this folder. With the CA's key the command could sign certificates, and with that of
		// the audit log checkpoints.
		dir := filepath.Dir(g.ClientFiles().Bundle)
		return confine.Command{
			Args: command, Env: confinedVars(commandVars(g), os.Environ(), options.Reach), Bundle: g.ClientFiles().Bundle,
			ReadOnly: dir, Hidden: []string{filepath.Join(dir, "ca-key.pem"), filepath.Join(dir, evidence.KeyFile)}, Ended: serving(ctx, g),
		}, nil
	})
	if exec, ok := errors.AsType[*exec.Error](err); ok {
		return 0, nil, notStarted(s, command[0], exec.Err)
	}
	if step, ok := errors.AsType[*confine.StepError](err); ok {
		s.Status(step)
		return 0, nil, console.Exit(125)
	}
	cause := "no request came through the gate, which is the only network of the command"
	if len(r.Reach) > 0 {
		cause += " beside --reach " + strings.Join(r.Reach, ", ")
	}
	return status, []string{cause + "; connections to ports that --ports does not name are refused"}, err
}

// confinedVars returns the environment of a confined command: environ with the variables for a command.
// The status page is out of its reach, and what it may reach without the gate needs no proxy.
func confinedVars(vars clientenv.Variables, environ []string, reach []confine.Reach) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "ROBOTSGATE_ADMIN=") })
	for _, v := range vars {
		switch v.Name {
		case "ROBOTSGATE_ADMIN":
			continue
		case "no_proxy", "NO_PROXY":
			for _, r := range reach {
				if r.Host != "" {
					v.Value += "," + r.Host
				}
			}
		}
		environ = append(environ, v.Name+"="+v.Value)
	}
	// Each name once, with its last value, as a command of exec has it: many clients take the first of two.
	return (&exec.Cmd{Env: environ}).Environ()
}
