// Package processes watches the processes of a command, and says why the command may have sent no request through the
// gate.
package processes

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is noted about the processes of a command.
const (
	maxProcesses = 100
	maxProcFile  = 256 << 10 // bytes that are read of a file below /proc
	firstLook    = 5 * time.Millisecond
	longestPause = time.Second // between two looks
)

// Seen is what was seen of a command and its descendants. Short-lived ones may be missed, and
// without Linux's /proc all are.
type Seen struct {
	names   []string // of their programs, sorted, each once
	cleared []string // of these, programs that had no variable for a proxy
}

// Watch looks at the process pid and its descendants until the returned function is called,
// which returns what was seen.
func Watch(pid int) (seen func() Seen) {
	stop, result := make(chan struct{}), make(chan Seen, 1)
	go func() {
		var p Seen
		for pause := firstLook; ; pause = min(2*pause, longestPause) {
			select {
			case <-time.After(pause):
				p.look(pid)
			case <-stop:
				result <- p
				return
			}
		}
	}()
	return func() Seen {
		close(stop)
		return <-result
	}
}

// look notes the process pid and its descendants, at most maxProcesses.
func (p *Seen) look(pid int) {
	pids := []int{pid}
	for i := 0; i < len(pids) && len(pids) < maxProcesses; i++ {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, file := range tasks[:min(len(tasks), maxProcesses)] {
			for child := range strings.FieldsSeq(string(procFile(file))) {
				if n, err := strconv.Atoi(child); err == nil && len(pids) < maxProcesses {
					pids = append(pids, n)
				}
			}
		}
	}
	for _, pid := range pids {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // of a script: its interpreter
		if err == nil {
			p.note(filepath.Base(program), procFile(fmt.Sprintf("/proc/%d/environ", pid)))
		}
	}
}

// note notes a process. An environ that is empty or cut off says nothing: the process has ended, or
// has executed another program. Nor does one with an empty variable: the process has written its
// title over it, as Chromium's do.
func (p *Seen) note(name string, environ []byte) {
	p.names = insert(p.names, name)
	whole := len(environ) < maxProcFile && bytes.HasSuffix(environ, []byte{0})
	if whole && !bytes.Contains(environ, []byte{0, 0}) && !hasProxy(environ) {
		p.cleared = insert(p.cleared, name)
	}
}

// hasProxy reports whether an environment names a proxy.
func hasProxy(environ []byte) bool {
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		name, value, _ := strings.Cut(strings.ToLower(string(variable)), "=")
		if value != "" && (name == "http_proxy" || name == "https_proxy" || name == "all_proxy") {
			return true
		}
	}
	return false
}

// insert adds a name to sorted names, unless they have it or are many.
func insert(names []string, name string) []string {
	i, found := slices.BinarySearch(names, name)
	if found || name == "" || len(names) >= maxProcesses {
		return names
	}
	return slices.Insert(names, i, name)
}

// procFile returns the beginning of a file below /proc, nil after an error.
func procFile(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProcFile))
	if err != nil {
		return nil
	}
	return data
}
