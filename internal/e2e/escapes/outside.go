//go:build linux && (amd64 || arm64)

package escapes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"robotsgate/internal/confine/attempts"
)

// Outside has the targets of all attempts.
type Outside struct {
	*attempts.Outside
	targets
	uid int
	tty *os.File // the terminal of the attempts
}

// Start starts the targets for attempts by a user; self is a command that [Main] serves. Targets that
// are not permitted here are in World.Missing. It lets everyone use ping sockets, adds a network
// device, hides a socket with a mount, and makes programs with root's privileges that any user could
// abuse as long as the targets run.
func Start(self []string, uid int) (*Outside, error) {
	common, err := attempts.Start(self)
	if err != nil {
		return nil, err
	}
	o := &Outside{Outside: common, uid: uid}
	steps := []func() error{o.releaseCommon, o.startStandIn, o.listenInternet, o.listenGate, o.listenUnix, o.listenRaw, o.watchDevices, o.openDescriptors, o.shareMemory, o.openTerminal, o.copyPrograms, o.checkKernel}
	for _, step := range steps {
		if err := step(); err != nil {
			o.Close()
			return nil, err
		}
	}
	return o, nil
}

// releaseCommon gives the user what package attempts has made.
func (o *Outside) releaseCommon() error {
	err := errors.Join(o.release(o.World.Dir), o.release(filepath.Dir(o.World.At["renamed"])))
	for _, at := range o.World.At {
		if strings.HasPrefix(at, "/") {
			err = errors.Join(err, o.release(at))
		}
	}
	return err
}

// A Result is the outcome of one attempt.
type Result struct {
	Attempt
	Out     bool   // it has reached something outside
	Skipped string // why it was not made
	Seen    string
}

// Try makes all attempts, in a process that confine has put the words of another command before, and
// returns the results.
func (o *Outside) Try(confine []string, errs io.Writer) ([]Result, error) {
	o.Confined = len(confine) > 0
	own, err := json.Marshal(o.targets)
	if err != nil {
		return nil, err
	}
	o.World.At[ownTargets] = string(own)
	cmd := o.Command(context.Background(), slices.Concat(o.World.Self, []string{"launch", o.World.Run}, confine)...)
	cmd.Env = append(os.Environ(), sessionKeyVariable+"="+o.Secret)
	cmd.Stderr = errs
	cmd.SysProcAttr.Credential = o.credential()
	if o.tty != nil {
		cmd.Stdin, cmd.SysProcAttr.Setctty = o.tty, true
	}
	reports, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	outcomes, err := o.Results(runnable(), reports)
	if err != nil {
		return nil, err
	}
	var results []Result
	for i, a := range All() {
		results = append(results, Result{a, outcomes[i].Out, outcomes[i].Skipped, outcomes[i].Seen})
	}
	return results, nil
}

// credential returns the user of the attempts; nil if this process has it.
func (o *Outside) credential() *syscall.Credential {
	if o.uid == os.Getuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.uid)}
}

// release gives a file to the user of the attempts.
func (o *Outside) release(path string) error { return os.Chown(path, o.uid, o.uid) }

// listenPath starts a target with a Unix socket that the user may use.
func (o *Outside) listenPath(name, network, path string) error {
	err := o.ListenUnix(name, network, path)
	if err != nil || path[0] == '@' {
		return err
	}
	return o.release(path)
}

// Config returns the configuration of a gate for the attempts: two of its origins are on loopback.
func (o *Outside) Config() string {
	return fmt.Sprintf("data_dir: %s\nlog: {level: error}\nrobots: {readings: strict}\negress: {allow_private: [127.83.0.8/31]}\n", filepath.Join(o.World.Dir, "data"))
}

// Ports returns the ports that the gate has to catch.
func (o *Outside) Ports() string { return fmt.Sprintf("80,443,%d,%d", o.HTTPPort, o.TLSPort) }

// startStandIn starts the process that stands in for the gate. If the attempts have another user than
// this process, it also takes the place of this process in the attempts of package attempts.
func (o *Outside) startStandIn() error {
	cmd := self(&o.World, "stand-in")
	cmd.Dir = o.World.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential()}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = theirs
	// An attempt opens it by /proc/PID/fd, where the owner's permissions count.
	if err := errors.Join(theirs.Chown(o.uid, -1), cmd.Start(), theirs.Close()); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	lines := bufio.NewScanner(out)
	done := make(chan struct{})
	o.OnClose(func() {
		in.Close()
		<-done
		_ = cmd.Wait()
	})
	if err := json.NewEncoder(in).Encode(standInOrder{o.World.Run, o.Secret}); err != nil || !lines.Scan() {
		close(done)
		return errors.Join(err, errors.New("stand-in: no answer"))
	}
	go func() {
		defer close(done)
		for lines.Scan() {
			o.Record(lines.Bytes())
		}
	}()
	if err := json.Unmarshal(lines.Bytes(), &o.StandIn); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	if o.StandIn.Key == 0 {
		o.Missing("user key", errors.New("no user keyring"))
	}
	if o.StandIn.PIDHandle == nil {
		o.Missing("pidfd handle", errors.New("the kernel has no file handles of processes"))
	}
	if o.StandIn.NetNSHandle == nil {
		o.Missing("network handle", errors.New("the kernel has no file handles of namespaces"))
	}
	if o.uid == os.Getuid() {
		return nil
	}
	o.World.PID, o.World.Pipe, o.World.Key = o.StandIn.PID, 1, o.StandIn.Key
	return o.Give("pidfd")(unix.PidfdOpen(o.StandIn.PID, 0))
}
