package gate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// portUser names the process that listens on an address, such as " by nginx (process 4711)". It returns "" if that
// cannot be known: the process may be another user's.
func portUser(address string) string {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return ""
	}
	a := resolved.AddrPort()
	sockets := slices.Concat(listeningSockets("/proc/net/tcp", a), listeningSockets("/proc/net/tcp6", a))
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range open {
		if socket, err := os.Readlink(file); err == nil && slices.Contains(sockets, socket) {
			process := filepath.Dir(filepath.Dir(file))
			name, err := os.ReadFile(process + "/comm")
			if err != nil {
				return ""
			}
			return fmt.Sprintf(" by %q (process %s)", bytes.TrimSpace(name), filepath.Base(process))
		}
	}
	return ""
}

// listeningSockets returns the sockets in a table of the kernel that listen on an address, or on all addresses with
// its port, by the names that descriptors have: socket:[INODE].
func listeningSockets(table string, address netip.AddrPort) (sockets []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	const listening, inode = "0A", 9
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) <= inode || fields[3] != listening {
			continue
		}
		local, ok := parseSocketAddress(fields[1])
		all := local.Addr().IsUnspecified() || !address.Addr().IsValid() || address.Addr().IsUnspecified()
		if ok && local.Port() == address.Port() && (all || local.Addr() == address.Addr().Unmap()) {
			sockets = append(sockets, "socket:["+fields[inode]+"]")
		}
	}
	return sockets
}

// parseSocketAddress reads an address such as 0100007F:245D, in words of the machine's byte order.
func parseSocketAddress(text string) (a netip.AddrPort, ok bool) {
	host, port, _ := strings.Cut(text, ":")
	words, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(words)%4 != 0 {
		return a, false
	}
	for i := 0; i < len(words); i += 4 {
		binary.BigEndian.PutUint32(words[i:], binary.NativeEndian.Uint32(words[i:]))
	}
	ip, ok := netip.AddrFromSlice(words)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}
