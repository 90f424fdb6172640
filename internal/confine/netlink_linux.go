//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// netlink sends a request to the kernel, and calls each with every message of the answer: netlink(7).
func netlink(protocol int, kind, flags uint16, body []byte, each func(message []byte)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	header := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind, Flags: unix.NLM_F_REQUEST | flags}
	if err := unix.Sendto(fd, append(encoded(header), body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer := make([]byte, 65536)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type != unix.NLMSG_ERROR:
				each(m.Data)
			case len(m.Data) < 4:
				return unix.EPROTO
			default:
				if errno := -int32(binary.NativeEndian.Uint32(m.Data)); errno != 0 {
					return unix.Errno(errno)
				}
				return nil // an acknowledgement
			}
		}
	}
}

// encoded returns a struct of the kernel, which has no gaps, as bytes.
func encoded(v any) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err) // the type has no fixed size
	}
	return b
}
