//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/gob"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stubArgument is the first argument of a stub. The second one is the descriptor of its connection to
// the parent.
const stubArgument = "--confined-stub"

// IsStub reports whether a process with these arguments is to be a stub.
func IsStub(args []string) bool { return len(args) == 3 && args[1] == stubArgument }

// Stub is the stub's main function: it prepares the namespaces in which it was started, starts the
// command and returns its exit status.
func Stub() int {
	control, err := strconv.Atoi(os.Args[2])
	if err != nil || os.Getpid() != 1 {
		return setupStatus
	}
	unix.CloseOnExec(control)
	// Signals of the terminal are for the command, which may also send any signal to this process. They
	// are caught, not ignored: the command would inherit that they are ignored. Signals that were ignored
	// from the beginning stay ignored, as with nohup.
	signal.Notify(make(chan os.Signal, 1), notIgnored(catchable()...)...)

	s := &stub{control: os.NewFile(uintptr(control), "control")}
	s.from, s.to = gob.NewDecoder(s.control), gob.NewEncoder(s.control)
	command, err := s.prepare()
	if err != nil {
		s.report(err)
		return setupStatus
	}
	go s.obey(command)
	debug.FreeOSMemory() // from now on the stub waits
	return s.wait(command)
}

// setupStatus is the exit status of a stub that has not started the command.
const setupStatus = 125

// catchable returns the signals that a process can catch, without those that Go's runtime uses itself.
func catchable() (all []os.Signal) {
	for n := syscall.Signal(1); n <= 31; n++ {
		if n != syscall.SIGKILL && n != syscall.SIGSTOP && n != syscall.SIGCHLD && n != syscall.SIGURG {
			all = append(all, n)
		}
	}
	return all
}

// notIgnored leaves out signals that this process was started to ignore.
func notIgnored(signals ...os.Signal) (all []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}

// A stub is the first process in the namespaces.
type stub struct {
	control *os.File
	from    *gob.Decoder
	to      *gob.Encoder
	passed  bool // all sockets were passed to the parent
}

// prepare does all steps, and starts the command.
func (s *stub) prepare() (command int, err error) {
	var first setup
	if err := s.from.Decode(&first); err != nil {
		return 0, err
	}
	if err := setUpNetwork(); err != nil {
		return 0, err
	}
	if err := openAll(first.Sockets, int(s.control.Fd())); err != nil {
		return 0, err
	}
	s.passed = true
	if err := setUpMounts(first.Masked); err != nil {
		return 0, err
	}
	trust := trustFiles()
	var then launch
	if err := s.from.Decode(&then); err != nil {
		return 0, err
	}
	if err := finishMounts(trust, &then); err != nil {
		return 0, err
	}
	// The command runs as the same user: it must neither trace this process nor read its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, failed("protect the first process", err)
	}
	// The privileges are those of a thread: this goroutine stays on the one that drops them.
	runtime.LockOSThread()
	if err := dropPrivileges(); err != nil {
		return 0, err
	}
	if command, err = start(&then); err != nil {
		return 0, err
	}
	return command, s.to.Encode(report{})
}

// start starts the command with the privileges of this thread.
func start(l *launch) (pid int, err error) {
	pid, err = syscall.ForkExec(l.Path, l.Args, &syscall.ProcAttr{Env: l.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, &notExecuted{err}
	}
	return pid, nil
}

// notExecuted means that all steps were done, but the command cannot be executed.
type notExecuted struct{ error }

func (n *notExecuted) Unwrap() error { return n.error }

func (s *stub) report(err error) {
	if !s.passed {
		if sendByte(int(s.control.Fd()), reportFollows) != nil {
			return
		}
	}
	r := report{Step: "prepare the command", Message: err.Error()}
	if step, ok := errors.AsType[*StepError](err); ok {
		r.Step, r.Message = step.Step, step.Err.Error()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		r.Errno = int(errno)
	}
	_, r.Exec = errors.AsType[*notExecuted](err)
	_ = s.to.Encode(r)
}

// obey passes signals on to the command. When the parent ends, this process does too, and with it all
// others in its PID namespace.
func (s *stub) obey(command int) {
	for {
		var o order
		if err := s.from.Decode(&o); err != nil {
			os.Exit(128 + int(syscall.SIGKILL))
		}
		_ = syscall.Kill(command, syscall.Signal(o.Signal))
	}
}

// wait returns the command's exit status when it has ended. Until then it waits for all other processes
// that have lost their parent.
func (s *stub) wait(command int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return setupStatus
		case pid != command:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}

func sendByte(control int, b byte) error {
	_, err := unix.Write(control, []byte{b})
	return err
}
