//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/gob"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs a command with this process's standard streams and terminal, and returns its exit status as
// a shell does. It calls prepare with the listeners inside, which must be served when prepare returns.
// If the system does not permit a step, or the options are wrong, the command is not started. The error
// is a [*StepError] in the first case, and an [*exec.Error] if the command cannot be executed.
//
// No other part of the process may start processes before Run returns.
func Run(o Options, prepare func(Listeners) (Command, error)) (status int, err error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	if err := checkStreams(o.Keep); err != nil {
		return 0, err
	}
	if err := closeOthers(o.Keep); err != nil {
		return 0, err
	}
	n := newNetwork(&o)
	c, err := startStub()
	if err != nil {
		return 0, err
	}
	defer c.end()
	defer n.close()
	// The stub prepares the namespaces while the caller prepares the gate.
	ready := make(chan error, 1)
	go func() { ready <- c.setUp(n, o.Reach) }()
	command, err := prepare(Listeners{Proxy: n.proxy, Transparent: n.caught})
	if command.Ended != nil {
		defer func() { err = errors.Join(err, command.Ended()) }()
	}
	if setUpErr := <-ready; setUpErr != nil {
		return 0, setUpErr
	}
	if err != nil {
		return 0, err
	}
	// A signal that comes from now on is for the command. The terminal sends SIGINT and SIGQUIT to the
	// command too: this process goes on until the command ends.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, notIgnored(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)...)
	defer close(signals)
	defer signal.Stop(signals)
	defer keepForeground()()
	if err := c.launch(command); err != nil {
		return 0, err
	}
	go c.forward(signals)
	return c.wait()
}

// setUp has the stub prepare the namespaces, and serves the sockets in them.
func (c *child) setUp(n *network, reach []Reach) error {
	hidden, err := hostSockets(reach)
	if err != nil {
		return err
	}
	_ = c.to.Encode(setup{Sockets: n.sockets, Masked: hidden}) // if the stub has ended, its report says why
	files, err := c.receive(len(n.sockets))
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close() // the network has a copy
			}
		}
	}()
	if err != nil {
		return err
	}
	return n.attach(files)
}

// A child is the stub, as seen by this process.
type child struct {
	process *os.Process
	control *os.File
	to      *gob.Encoder
	from    *gob.Decoder
	release chan struct{} // lets the thread that has started the stub end
}

// startStub starts this program as the stub in new namespaces.
func startStub() (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// The stub gets the descriptors that have no close-on-exec flag at their numbers, and this is one.
	theirs, err := unix.FcntlInt(uintptr(pair[1]), unix.F_DUPFD, 3)
	unix.Close(pair[1])
	if err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	defer unix.Close(theirs)
	sys := identity()
	sys.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	sys.Pdeathsig = syscall.SIGKILL
	sys.AmbientCaps = ambient
	attr := &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: sys}
	c := &child{control: os.NewFile(uintptr(pair[0]), "control"), release: make(chan struct{})}
	c.to, c.from = gob.NewEncoder(c.control), gob.NewDecoder(c.control)
	started := make(chan error, 1)
	go func() {
		// The signal of Pdeathsig comes when the thread ends that has started the process: prctl(2).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		process, err := os.StartProcess("/proc/self/exe", []string{os.Args[0], stubArgument, strconv.Itoa(theirs)}, attr)
		c.process = process
		started <- err
		<-c.release
	}()
	if err := <-started; err != nil {
		close(c.release)
		c.control.Close()
		return nil, stepError("make namespaces (user, network, PID, mount, IPC)", err)
	}
	return c, nil
}

// receive receives the sockets that the stub has opened; nil stands for an optional one.
func (c *child) receive(count int) (files []*os.File, err error) {
	for range count {
		kind, f, err := receiveSocket(int(c.control.Fd()))
		switch {
		case err != nil:
			return files, stepError("take a socket from the process in the namespaces", err)
		case kind == reportFollows:
			return files, c.report()
		}
		files = append(files, f)
	}
	return files, nil
}

// launch has the stub start the command.
func (c *child) launch(command Command) error {
	name := command.Args[0]
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return &StepError{Step: "find the current folder", Err: err, Remedy: "It may have been removed: change to another one."}
	}
	l := launch{path, dir, command.Args, command.Env, command.Bundle, command.ReadOnly, command.Hidden}
	_ = c.to.Encode(l) // if the stub has ended, its report says why
	err = c.report()
	if n, ok := errors.AsType[*notExecuted](err); ok {
		return &exec.Error{Name: name, Err: n.error}
	}
	return err
}

// report reads the stub's report, and returns what has failed.
func (c *child) report() error {
	var r report
	if err := c.from.Decode(&r); err != nil {
		return stepError("prepare the command", errors.New("the process in the namespaces has ended"))
	}
	var err error = syscall.Errno(r.Errno)
	if r.Errno == 0 {
		err = errors.New(r.Message)
	}
	switch {
	case r.Exec:
		return &notExecuted{err}
	case r.Step == "":
		return nil
	}
	return stepError(r.Step, err)
}

// forward passes on signals, but those of the terminal, until the channel is closed.
func (c *child) forward(signals <-chan os.Signal) {
	for s := range signals {
		if s != syscall.SIGINT && s != syscall.SIGQUIT {
			_ = c.to.Encode(order{int(s.(syscall.Signal))})
		}
	}
}

// wait returns the exit status when the stub has ended, and with it all processes in the namespaces.
func (c *child) wait() (status int, err error) {
	state, err := c.process.Wait()
	if err != nil {
		return 0, err
	}
	if waited, ok := state.Sys().(syscall.WaitStatus); ok && waited.Signaled() {
		return 128 + int(waited.Signal()), nil
	}
	return state.ExitCode(), nil
}

// end ends the stub if it runs, and waits for it.
func (c *child) end() {
	c.control.Close() // the stub ends then
	_ = c.process.Kill()
	_, _ = c.process.Wait() // an error if it was waited for
	close(c.release)
}

// keepForeground remembers whether this process's group is in the foreground of its terminal. The
// returned function puts it there again if the group that is there has ended: a shell inside cannot
// return the terminal to a group outside.
func keepForeground() (restore func()) {
	own := syscall.Getpgrp()
	for fd := range 3 {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != own {
			continue
		}
		return func() {
			group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
			if err != nil || unix.Kill(-group, 0) != unix.ESRCH {
				return
			}
			signal.Ignore(syscall.SIGTTOU)
			defer signal.Reset(syscall.SIGTTOU)
			_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, own)
		}
	}
	return func() {}
}

// identity maps the user and the group of this process to themselves, so that the command's files are theirs.
func identity() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
}
