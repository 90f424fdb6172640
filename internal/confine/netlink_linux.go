//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// netlink sends a request to the kernel's routes, and waits until it is acknowledged: netlink(7).
func netlink(kind, flags uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	header := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | flags}
	if err := unix.Sendto(fd, append(encoded(header), body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buffer, 0)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseNetlinkMessage(buffer[:n])
	if err != nil || len(messages) != 1 || messages[0].Header.Type != unix.NLMSG_ERROR || len(messages[0].Data) < 4 {
		return errors.Join(err, unix.EPROTO)
	}
	if errno := -int32(binary.NativeEndian.Uint32(messages[0].Data)); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}

// encoded returns a struct of the kernel, which has no gaps, as bytes.
func encoded(v any) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err) // the type has no fixed size
	}
	return b
}
