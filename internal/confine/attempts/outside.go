//go:build linux && (amd64 || arm64)

package attempts

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A World tells attempts where the targets outside are.
type World struct {
	Run       string            // the beginning of every token of this run
	Self      []string          // the command that Main serves
	Dir       string            // a directory with targets, in which attempts may write
	Port      int               // of the targets of TCP and UDP, on every address
	At        map[string]string // addresses of this machine and of Unix sockets, by kind
	FDs       map[string]int    // descriptors that the attempts inherit, unless these are closed
	PID, Pipe int               // a process with the gate's user, and its descriptor of a pipe
	Key, IPC  int               // a key of that user, and the key of System V shared memory
	Missing   map[string]string // why a thing could not be prepared
}

// Token returns what the attempt with a name sends.
func (w *World) Token(name string) string { return w.Run + "-" + name + "." }

// tokens matches tokens of any run. In a DNS query the length of the next label stands for the dot.
var tokens = regexp.MustCompile(`(rg[0-9a-z]{26})-([a-z0-9-]+)[.\x07]`)

// missing returns why an attempt cannot be made in this world.
func (w *World) missing(a Attempt) string {
	var reasons []string
	for _, need := range a.Needs {
		if reason, gone := w.Missing[need]; gone {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// Outside has the targets, and knows which attempts have reached them.
type Outside struct {
	World  World
	Secret string // what the targets keep for attempts that read; it is not in World

	mu      sync.Mutex
	reached map[string]bool

	files   []*os.File // descriptors that attempts inherit
	closers []func()
}

// Start starts the targets of [All]. Targets that are not permitted here are in World.Missing. Self is
// the command that [Main] serves.
func Start(self []string) (*Outside, error) {
	dir, err := os.MkdirTemp("/tmp", "rg")
	if err != nil {
		return nil, err
	}
	o := &Outside{Secret: "secret-" + rand.Text(), reached: map[string]bool{}}
	o.World = World{Run: "rg" + strings.ToLower(rand.Text()), Self: self, Dir: dir, At: map[string]string{}, FDs: map[string]int{}, Missing: map[string]string{}}
	o.OnClose(func() { os.RemoveAll(dir) })
	if err := errors.Join(o.listenInternet(), o.listenUnix(), o.openDescriptors(), o.showProcess(), o.share()); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// OnClose adds a function that Close calls.
func (o *Outside) OnClose(f func()) { o.closers = append(o.closers, f) }

// Close ends the targets.
func (o *Outside) Close() {
	for _, f := range slices.Backward(o.closers) {
		f()
	}
}

// Missing notes why something cannot be prepared.
func (o *Outside) Missing(what string, err error) {
	if err != nil {
		o.World.Missing[what] = err.Error()
	}
}

// Record notes the tokens in data that a target has received.
func (o *Outside) Record(data []byte) (found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, match := range tokens.FindAllSubmatch(data, -1) {
		if string(match[1]) == o.World.Run {
			o.reached[string(match[2])], found = true, true
		}
	}
	return found
}

// Command returns the command that makes the attempts and prints their reports. It is behind confine,
// the words of another command.
func (o *Outside) Command(ctx context.Context, confine ...string) *exec.Cmd {
	world, _ := json.Marshal(o.World)
	words := append(slices.Concat(confine, o.World.Self), string(world))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = o.World.Dir
	cmd.ExtraFiles = o.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	return cmd
}

// A Result is the outcome of one attempt.
type Result struct {
	Name, Tries string
	Out         bool   // it has reached something outside
	Skipped     string // why it was not made
	Seen        string
}

// Results reads the reports of the attempts and says which of them have got out.
func (o *Outside) Results(all []Attempt, reports []byte) (results []Result, err error) {
	seen := map[string]Report{}
	for line := range bytes.Lines(reports) {
		var r Report
		// An attempt may have written to the output of another process inside.
		if json.Unmarshal(line, &r) == nil {
			seen[r.Name] = r
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range all {
		r, made := seen[a.Name]
		result := Result{a.Name, a.Tries, o.reached[a.Name] || strings.Contains(r.Seen, o.Secret), o.World.missing(a), r.Seen}
		if !made && result.Skipped == "" {
			return nil, fmt.Errorf("attempt %s was not made", a.Name)
		}
		results = append(results, result)
	}
	return results, nil
}
