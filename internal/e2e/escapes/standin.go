//go:build linux && (amd64 || arm64)

package escapes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"robotsgate/internal/confine/attempts"
)

// What the attempts on a process outside read and write. Go does not move package variables.
var (
	standInSecret [128]byte
	standInBuffer [2][128]byte // one for each way to write to it, since the stand-in may look only after both
)

// A standInOrder is what the stand-in is started with.
type standInOrder struct {
	Run    string
	Secret string // in its memory, and in a key of its user
}

// standIn is a process with the user of the gate, for attempts that would disturb the gate. It reads
// an order, prints what a [StandIn] has, and then a line for each sign of an attempt, until its
// standard input ends.
func standIn(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	var order standInOrder
	if err := decoder.Decode(&order); err != nil {
		return err
	}
	size := copy(standInSecret[:], order.Secret)
	w := attempts.World{Run: order.Run}
	for sig, name := range map[os.Signal]string{syscall.SIGUSR1: "kill", syscall.SIGUSR2: "kill-thread", syscall.SIGHUP: "kill-pidfd"} {
		arrived := make(chan os.Signal, 1)
		signal.Notify(arrived, sig)
		go func() {
			for range arrived {
				fmt.Fprintln(out, w.Token(name))
			}
		}()
	}
	s := StandIn{
		PID: os.Getpid(), SecretSize: size,
		Secret: uintptr(unsafe.Pointer(&standInSecret)), Buffer: uintptr(unsafe.Pointer(&standInBuffer)),
	}
	// Without keys or handles the number and the handles stay zero.
	if key, err := unix.AddKey("user", order.Run, []byte(order.Secret), unix.KEY_SPEC_USER_KEYRING); err == nil {
		s.Key = key
		unix.KeyctlSetperm(key, 0x3f3f3f3f)
		unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, key, 600, 0, 0)
		defer unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	}
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		if handle, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH); err == nil {
			s.HandleType[0], s.PIDHandle = handle.Type(), handle.Bytes()
		}
		unix.Close(fd)
	}
	if handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/proc/self/ns/net", unix.AT_SYMLINK_FOLLOW); err == nil {
		s.HandleType[1], s.NetNSHandle = handle.Type(), handle.Bytes()
	}
	if err := json.NewEncoder(out).Encode(s); err != nil {
		return err
	}
	go watchBuffer(out)
	_, err := io.Copy(io.Discard, in)
	return err
}

// watchBuffer prints what other processes have written to the buffer. It clears nothing, so that it loses nothing that comes
// meanwhile.
func watchBuffer(out io.Writer) {
	var printed [len(standInBuffer)][]byte
	for ; ; time.Sleep(10 * time.Millisecond) {
		for i := range standInBuffer {
			buffer := bytes.Clone(standInBuffer[i][:])
			if token, _, sent := bytes.Cut(buffer, []byte(".")); sent && !bytes.Equal(token, printed[i]) {
				fmt.Fprintf(out, "%s.\n", token)
				printed[i] = token
			}
		}
	}
}
