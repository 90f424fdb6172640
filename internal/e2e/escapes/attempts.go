//go:build linux && (amd64 || arm64)

// Package escapes has the attempts with which the tests of run --confine try to get out: those of
// doctor --confine, which are in package attempts, and all others that are known. Each succeeds
// without confinement; the tests make them there too.
//
// [Start] starts the targets, and [Outside.Try] makes the attempts. It changes the machine: call it in
// namespaces that were made for it.
package escapes

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"robotsgate/internal/confine/attempts"
)

// An Attempt is one way to reach something outside a confined command.
type Attempt struct {
	Name  string   // lower-case letters, digits and hyphens
	Tries string   // what it does, as an infinitive
	Needs []string // keys of World.Missing

	// Root is set if the attempt needs root to succeed without confinement.
	Root bool

	// Unproven says why the attempt was never seen to succeed without confinement. It is made all the
	// same, and does not count.
	Unproven string

	try func(*trial) error
}

// own returns the attempts that only the tests make.
func own() []Attempt {
	return slices.Concat(
		internet, names, rawSockets, otherFamilies, throughGate,
		unixSockets, desktopSockets, hiddenSockets, inherited,
		processes, namespaces, privileges, memory, terminals,
	)
}

// All returns all attempts.
func All() (all []Attempt) {
	for _, a := range attempts.All() {
		all = append(all, Attempt{Name: a.Name, Tries: a.Tries, Needs: a.Needs})
	}
	return append(all, own()...)
}

// runnable returns all attempts as package attempts makes them.
func runnable() []attempts.Attempt {
	all := attempts.All()
	for _, a := range own() {
		all = append(all, attempts.Attempt{Name: a.Name, Tries: a.Tries, Needs: a.Needs, Try: func(t *attempts.Trial) error {
			own, err := newTrial(t)
			if err != nil {
				return err
			}
			return own.report(a.try(own))
		}})
	}
	return all
}

// targets tells attempts where the targets are that [attempts.World] does not have.
type targets struct {
	// Confined is set for attempts inside. There they try every process that they see, which would
	// do harm outside.
	Confined bool

	HTTPPort  int    // TCP, caught by the gate
	TLSPort   int    // TLS, caught by the gate
	Allowed   string // an origin that the gate lets requests pass to: its requests do not count
	Denied    string // an origin with a robots.txt that disallows /denied
	GroupPort int    // UDP, a member of multicast groups
	Multicast int    // index of the interface for multicast

	StandIn StandIn // a process with the gate's user

	SetUID, FileCaps string // programs like World.Self, with privileges
	IPCKey           int    // of System V IPC
	Queue            string // of POSIX messages
}

// A StandIn is a process outside that has what the gate has: memory, descriptors and namespaces.
type StandIn struct {
	PID         int
	Secret      uintptr // address of a secret
	SecretSize  int
	Buffer      uintptr // address of two buffers of 128 bytes that the process watches
	PIDHandle   []byte  // file handle of its pidfd
	NetNSHandle []byte  // file handle of its network namespace
	HandleType  [2]int32
	Key         int // number of a key of its user
}

// ownTargets is the key of World.At with the targets.
const ownTargets = "own targets"

// A trial is one attempt that is being made.
type trial struct {
	*attempts.Trial
	targets
	found []string // what it read and takes for a secret
}

func newTrial(of *attempts.Trial) (*trial, error) {
	t := &trial{Trial: of}
	return t, json.Unmarshal([]byte(t.At[ownTargets]), &t.targets)
}

// secrets matches what the targets keep for attempts that read.
var secrets = regexp.MustCompile(`secret-[A-Z2-7]{26}`)

// read notes what an attempt has read outside.
func (t *trial) read(data []byte) error {
	found := secrets.FindAllString(string(data), -1)
	if len(found) == 0 {
		return fmt.Errorf("no secret in %d bytes", len(data))
	}
	t.found = append(t.found, found...)
	return nil
}

// report adds what was found to the error of an attempt.
func (t *trial) report(err error) error {
	if len(t.found) == 0 {
		return err
	}
	return errors.Join(errors.New("found "+strings.Join(t.found, " ")), err)
}
