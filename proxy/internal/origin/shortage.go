package origin

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// A shortage is a lack of file descriptors. It says nothing about the origin of a connection that could not be opened.
type shortage struct {
	what   string
	remedy string
	errno  syscall.Errno
}

var shortages = []shortage{
	{"file descriptors", "raise the limit on open files of the gate: ulimit -n, LimitNOFILE in a systemd unit, ulimits in a compose file", syscall.EMFILE},
	{"file descriptors of the whole machine", "raise fs.file-max of the gate's machine", syscall.ENFILE},
}

// shortageIn returns the shortage that is the cause of an error, and nil if there is none.
func shortageIn(err error) *shortage {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	for i := range shortages {
		s := &shortages[i]
		// A DNSError does not wrap the socket's error, but contains its text.
		if errors.Is(err, s.errno) || isDNS && strings.HasSuffix(dns.Err, s.errno.Error()) {
			return s
		}
	}
	return nil
}

// exhausted returns an error that a shortage caused as an ErrExhausted, and other errors unchanged.
func exhausted(err error) error {
	if errors.Is(err, ErrExhausted) || shortageIn(err) == nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrExhausted, err)
}
