//go:build linux && (amd64 || arm64)

package attempts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Attempt is one way to reach something outside a confined command.
type Attempt struct {
	Name  string // lower-case letters, digits and hyphens
	Tries string // what it does, as an infinitive

	// Root is set if the attempt needs root to succeed without confinement.
	Root bool

	// Needs names what must have been prepared outside; World.Missing says what was not.
	Needs []string

	// Unproven says why the attempt was never seen to succeed without confinement. It is made all the
	// same, and does not count.
	Unproven string

	try func(*trial) error
}

// All returns all attempts, in the order of the report.
func All() []Attempt {
	all := slices.Concat(
		internet, names, rawSockets, otherFamilies, throughGate,
		unixSockets, desktopSockets, hiddenSockets, inherited,
		processes, namespaces, privileges, memory, terminals,
	)
	return all
}

// find returns the attempt with a name.
func find(name string) (Attempt, error) {
	for _, a := range All() {
		if a.Name == name {
			return a, nil
		}
	}
	return Attempt{}, fmt.Errorf("unknown attempt %q", name)
}

// A World tells attempts where the targets outside are. It holds no secret: an attempt that shows
// one has read it outside.
type World struct {
	Run  string   // the beginning of every token of this run
	Self []string // the command that Main serves
	Dir  string   // a directory with targets, in which attempts may write

	// Confined is set for attempts inside. There they try every process that they see, which would
	// do harm outside.
	Confined bool

	Port      int    // TCP, UDP and UDP-Lite, on every address
	HTTPPort  int    // TCP, caught by the gate
	TLSPort   int    // TLS, caught by the gate
	LocalIPv4 string // of this machine, not loopback
	LocalIPv6 string
	LinkLocal string // with its zone
	Allowed   string // an origin that the gate lets requests pass to: its requests do not count
	Denied    string // an origin with a robots.txt that disallows /denied
	Resolver  string // a DNS server, on port 53

	Unix map[string]string // paths and abstract names of Unix sockets, by kind
	FDs  map[string]int    // descriptors that the attempts inherit, unless these are closed

	StandIn StandIn // a process with the gate's user

	SetUID, FileCaps string // programs like Self, with privileges
	IPCKey           int    // of System V IPC
	Queue            string // of POSIX messages
	Multicast        int    // index of the interface for multicast

	// Missing says for each thing that could not be prepared why not.
	Missing map[string]string
}

// A StandIn is a process outside that has what the gate has: memory, descriptors and namespaces.
type StandIn struct {
	PID         int
	Secret      uintptr // address of a secret
	SecretSize  int
	Buffer      uintptr // address of a buffer that the process watches
	PIDHandle   []byte  // file handle of its pidfd
	NetNSHandle []byte  // file handle of its network namespace
	HandleType  [2]int32
	Key         int // number of a key of its user
}

// Token returns what an attempt sends to a target to show that it has reached it.
func (w *World) Token(name string) string { return w.Run + "-" + name + "." }

// tokens matches tokens of any run. In a DNS query the length of the next label stands for the dot.
var tokens = regexp.MustCompile(`(rg[0-9a-f]{16})-([a-z0-9-]+)[.\x07]`)

// missing returns why an attempt can't be made in this world.
func (w *World) missing(a Attempt) string {
	var reasons []string
	for _, need := range a.Needs {
		if reason, gone := w.Missing[need]; gone {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// A trial is one attempt that is being made.
type trial struct {
	*World
	name  string
	found []string // what it read and takes for a secret
}

func (t *trial) token() string { return t.Token(t.name) }

// secrets matches what the targets keep for attempts that read.
var secrets = regexp.MustCompile(`secret-[0-9a-f]{32}`)

// read notes what an attempt has read outside.
func (t *trial) read(data []byte) error {
	found := secrets.FindAllString(string(data), -1)
	if len(found) == 0 {
		return fmt.Errorf("no secret in %d bytes", len(data))
	}
	t.found = append(t.found, found...)
	return nil
}
