//go:build linux && (amd64 || arm64)

package attempts

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Outside has the targets, and knows which attempts have reached them.
type Outside struct {
	World World

	options Options
	key     []byte // of the secrets

	mu      sync.Mutex
	reached map[string]bool

	files   []*os.File // descriptors that attempts inherit
	tty     *os.File   // the terminal of the attempts
	closers []func()
}

// Options say how targets are started.
type Options struct {
	Self []string // the command that [Main] serves
	UID  int      // the user that makes the attempts; the same as this process's unless that is root's

	// Prepare changes this machine, or the namespaces that the caller has made for this: it lets
	// everyone use ping sockets, adds a network device, hides a socket with a mount, and makes programs
	// with root's privileges that any user could abuse as long as the targets run.
	Prepare bool
}

// Start starts the targets. Targets that are not permitted here are in World.Missing.
func Start(options Options) (*Outside, error) {
	random := make([]byte, 8)
	rand.Read(random)
	o := &Outside{options: options, key: []byte(rand.Text()), reached: map[string]bool{}}
	w := &o.World
	w.Run, w.Self = "rg"+hex.EncodeToString(random), options.Self
	w.Unix, w.FDs, w.Missing = map[string]string{}, map[string]int{}, map[string]string{}
	var err error
	if w.Dir, err = os.MkdirTemp("/tmp", "rg"); err != nil {
		return nil, err
	}
	o.onClose(func() { os.RemoveAll(w.Dir) })
	// The user of the attempts writes there, and no other user: this process may be root's.
	if err := o.release(w.Dir); err != nil {
		o.Close()
		return nil, err
	}
	steps := []func() error{o.startStandIn, o.listenInternet, o.listenGate, o.listenUnix, o.listenRaw, o.watchDevices, o.openDescriptors, o.shareMemory, o.openTerminal, o.copyPrograms, o.checkKernel}
	for _, step := range steps {
		if err := step(); err != nil {
			o.Close()
			return nil, err
		}
	}
	return o, nil
}

func (o *Outside) onClose(f func()) { o.closers = append(o.closers, f) }

// Close ends the targets.
func (o *Outside) Close() {
	for i := len(o.closers) - 1; i >= 0; i-- {
		o.closers[i]()
	}
	for _, f := range o.files {
		f.Close()
	}
}

// missing notes why something can't be prepared.
func (o *Outside) missing(what string, err error) {
	if err != nil {
		o.World.Missing[what] = err.Error()
	}
}

// secret returns what an attempt must show to prove that it has read a target.
func (o *Outside) secret(name string) string {
	sum := hmac.New(sha256.New, o.key)
	sum.Write([]byte(name))
	return "secret-" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// record notes the tokens in data that a target has received.
func (o *Outside) record(data []byte) (found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, match := range tokens.FindAllSubmatch(data, -1) {
		if string(match[1]) == o.World.Run {
			o.reached[string(match[2])], found = true, true
		}
	}
	return found
}

// secretOf names the secret that an attempt reads.
var secretOf = map[string]string{
	"packet-capture": "beacon", "raw-capture": "beacon",
	"ptrace": "memory", "process-vm-read": "memory", "proc-mem-read": "memory",
	"sysv-shared-memory": "shared", "bpf-map": "bpf",
	"session-keyring": "session", "user-keyring": "user", "key-by-number": "user",
}

// A Result is the outcome of one attempt.
type Result struct {
	Attempt
	Out     bool   // it has reached something outside
	Skipped string // why it was not made
	Error   string // what the attempt has seen
}

// Results reads the reports of the attempts and says which of them have got out.
func (o *Outside) Results(reports []byte) ([]Result, error) {
	seen := map[string]report{}
	for line := range bytes.Lines(reports) {
		if !bytes.HasPrefix(line, []byte("{")) {
			continue // an attempt has written to the output of another process inside
		}
		var r report
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("report of an attempt: %w", err)
		}
		seen[r.Name] = r
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var results []Result
	for _, a := range All() {
		r, made := seen[a.Name]
		result := Result{Attempt: a, Error: r.Error, Out: o.reached[a.Name], Skipped: o.World.missing(a)}
		if !made && result.Skipped == "" {
			return nil, fmt.Errorf("attempt %s was not made", a.Name)
		}
		for _, found := range r.Found {
			result.Out = result.Out || secretOf[a.Name] != "" && found == o.secret(secretOf[a.Name])
		}
		results = append(results, result)
	}
	return results, nil
}

// Try makes all attempts, in a process that confine has put the words of another command before, and
// returns the results.
func (o *Outside) Try(ctx context.Context, confine []string, environ []string, errs io.Writer) ([]Result, error) {
	o.World.Confined = len(confine) > 0
	file := o.World.file()
	data, err := json.Marshal(o.World)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return nil, err
	}
	w := &o.World
	args := append(w.Self[1:len(w.Self):len(w.Self)], "launch", w.Run)
	args = append(append(args, confine...), w.Self...)
	cmd := exec.CommandContext(ctx, w.Self[0], append(args, "run", file)...)
	cmd.Env = append(environ, sessionKeyVariable+"="+o.secret("session"))
	cmd.Dir = w.Dir
	cmd.ExtraFiles = o.files
	cmd.Stderr = errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o.tty != nil {
		cmd.Stdin, cmd.SysProcAttr.Setctty = o.tty, true
	}
	if o.options.UID != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.options.UID), Gid: uint32(o.options.UID)}
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	// What was sent last may still be on its way, and the daemon connects after its parent's end.
	time.Sleep(300 * time.Millisecond)
	return o.Results(out)
}

// Config returns the configuration of a gate for the attempts: two of its origins are on loopback.
func (o *Outside) Config() string {
	return fmt.Sprintf("data_dir: %s\nlog: {level: error}\nrobots: {readings: strict}\negress: {allow_private: [127.83.0.8/31]}\n", filepath.Join(o.World.Dir, "data"))
}

// Ports returns the ports that the gate has to catch.
func (o *Outside) Ports() string {
	return fmt.Sprintf("80,443,%d,%d", o.World.HTTPPort, o.World.TLSPort)
}

// startStandIn starts the process that stands in for the gate.
func (o *Outside) startStandIn() error {
	w := &o.World
	cmd := exec.Command(w.Self[0], append(w.Self[1:len(w.Self):len(w.Self)], "stand-in")...)
	cmd.Dir = w.Dir
	if o.options.UID != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.options.UID), Gid: uint32(o.options.UID)}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	o.onClose(func() { out.Close() })
	cmd.Stdout = theirs
	// An attempt opens it by /proc/PID/fd, where the owner's permissions count.
	err = errors.Join(theirs.Chown(o.options.UID, -1), cmd.Start(), theirs.Close())
	if err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	lines := bufio.NewScanner(out)
	done := make(chan struct{})
	o.onClose(func() {
		in.Close()
		<-done
		_ = cmd.Wait()
	})
	if err := json.NewEncoder(in).Encode(standInOrder{w.Run, o.secret("memory"), o.secret("user")}); err != nil {
		close(done)
		return err
	}
	if !lines.Scan() {
		close(done)
		return errors.New("stand-in: no answer")
	}
	go func() {
		defer close(done)
		for lines.Scan() {
			o.record(lines.Bytes())
		}
	}()
	if err := json.Unmarshal(lines.Bytes(), &w.StandIn); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	if w.StandIn.Key == 0 {
		o.missing("user key", errors.New("no user keyring"))
	}
	if w.StandIn.PIDHandle == nil {
		o.missing("pidfd handle", errors.New("the kernel has no file handles of processes"))
	}
	if w.StandIn.NetNSHandle == nil {
		o.missing("network handle", errors.New("the kernel has no file handles of namespaces"))
	}
	return nil
}
