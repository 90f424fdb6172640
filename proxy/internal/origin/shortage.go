package origin

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
)

// isShortage reports whether an error says that the gate, or its machine, has no file descriptor left.
func isShortage(err error) bool {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	return slices.ContainsFunc([]syscall.Errno{syscall.EMFILE, syscall.ENFILE}, func(errno syscall.Errno) bool {
		// A DNSError does not wrap the socket's error, but contains its text.
		return errors.Is(err, errno) || isDNS && strings.HasSuffix(dns.Err, errno.Error())
	})
}

// exhausted returns an error that a shortage caused as an ErrExhausted, and other errors unchanged.
func exhausted(err error) error {
	if errors.Is(err, ErrExhausted) || !isShortage(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrExhausted, err)
}
