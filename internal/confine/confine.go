// Package confine runs one command where the gate is the only network there is, on Linux and without
// root.
//
// [Run] starts a second process of this program, the stub, in new user, network, PID, mount and IPC
// namespaces. There every address is a local one, so that a connection to any address and a caught
// port reaches a listener of the stub, which passes its listeners to this process. This process, which
// stays outside, accepts connections inside and dials outside. The stub then gives up all its
// privileges for the command, starts it, and ends with it; at its end the kernel ends all processes in
// the PID namespace.
package confine

// Where to change what.
//
//	sockets and routes inside  network_linux.go
//	what is hidden             hostsockets_linux.go and mounts_linux.go
//	system calls               privileges_linux.go

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// Options are what a confined command may use besides the gate.
type Options struct {
	Ports []uint16 // caught, at every address; nil: [DefaultPorts]
	Reach []Reach  // destinations that bypass the gate
	Keep  []int    // descriptors beyond 2 that are passed on; pipes and regular files always are
}

// DefaultPorts are caught unless others are chosen.
var DefaultPorts = []uint16{80, 443}

// Listeners accept the connections of the confined command.
type Listeners struct {
	Proxy       net.Listener // for clients that know of the proxy; on a free port of 127.0.0.1 inside
	Transparent net.Listener // for all others: the local address of a connection is the destination that the client chose
}

// A Command is what to run.
type Command struct {
	Args     []string // the program and its arguments
	Env      []string
	Bundle   string       // a PEM file that replaces the system's bundle of certificate authorities; "": none does
	ReadOnly string       // a folder that the command cannot change
	Hidden   []string     // files that it cannot read
	Ended    func() error // called when the command has ended, while the listeners are still open; may be nil
}

// A StepError says which step of the confinement the system does not permit. The command was not
// started.
type StepError struct {
	Step   string // as in "cannot make a user namespace"
	Err    error
	Remedy string
}

func (e *StepError) Error() string {
	text := fmt.Sprintf("the command was not started: cannot %s: %v", e.Step, e.Err)
	if e.Remedy != "" {
		text += "\n" + e.Remedy
	}
	return text
}

func (e *StepError) Unwrap() error { return e.Err }

// stepError returns the error of a step, with what to change if that can be found out.
func stepError(step string, err error) error {
	return &StepError{Step: step, Err: err, Remedy: remedy(step, readLine)}
}

// namespaceLimits are in /proc/sys/user: namespaces(7).
var namespaceLimits = []string{"max_user_namespaces", "max_net_namespaces", "max_pid_namespaces", "max_mnt_namespaces", "max_ipc_namespaces"}

// remedy says what the operator can change. Read returns the first line of a file, or "".
func remedy(step string, read func(path string) string) string {
	for _, name := range namespaceLimits {
		if read("/proc/sys/user/"+name) == "0" {
			return "The system permits no such namespaces: sysctl -w user." + name + "=10000, as root; and in /etc/sysctl.d, for later starts."
		}
	}
	switch {
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "The system permits user namespaces to root only: sysctl -w kernel.unprivileged_userns_clone=1, as root; and in /etc/sysctl.d, for later starts."
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && !strings.HasPrefix(read("/proc/self/attr/current"), "robotsgate"):
		return "AppArmor restricts user namespaces: install the profile deploy/apparmor/robotsgate in /etc/apparmor.d, with the path of this program, and load it with apparmor_parser -r; docs/confine.md has more."
	case strings.Contains(step, "/proc"):
		return "In a container or another sandbox, /proc must not be masked: docker run --security-opt systempaths=unconfined, or procMount: Unmasked in Kubernetes; docs/confine.md has all settings."
	}
	return "In a container or another sandbox, its seccomp and AppArmor profiles must permit namespaces: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined; docs/confine.md has narrower settings, and those for Kubernetes."
}

func readLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// check reports mistakes in the options.
func (o *Options) check() error {
	if o.Ports == nil {
		o.Ports = DefaultPorts
	}
	if len(o.Ports) > maxPorts || len(o.Reach) > maxReach {
		return fmt.Errorf("at most %d ports (--ports) and %d destinations (--reach) can be given", maxPorts, maxReach)
	}
	if slices.Contains(o.Ports, 53) {
		return fmt.Errorf("--ports: leave out 53: the gate answers DNS on that port")
	}
	return nil
}

// Bounds of what Options may ask for.
const (
	maxPorts = 64
	maxReach = 64
)

// ParsePorts reads a list such as 80,443.
func ParsePorts(list string) (ports []uint16, err error) {
	if strings.TrimSpace(list) == "" {
		return nil, errors.New("no port is given: name some, as in 80,443, or leave the option out")
	}
	for text := range strings.SplitSeq(list, ",") {
		port, err := parsePort(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}
