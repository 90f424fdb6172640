package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// resume finds the tree of the log again: from the state that is kept, and from the entries behind its checkpoint. If
// the file does not go on there as the gate has written it, resume begins a log with another name: there must never be
// two trees of one name.
func (l *Log) resume() error {
	signer, err := NewSigner(l.o.Name, l.o.Key)
	if err != nil {
		return err
	}
	s, err := ReadState(filepath.Join(l.o.Dir, CheckpointFile))
	key, number, latest := OwnKey(signer), 0, latest(l.o.Name, l.o.Files)
	if err == nil && s.Verify(key) == nil {
		number = suffix(l.o.Name, s.checkpoint.Origin)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && latest == 0:
		return l.begin(l.o.Name)
	case number == 0:
		l.Broken = "data_dir has no checkpoint of it by this key, or the checkpoint there is damaged"
	case s.Path == l.o.Path:
		if l.Broken, err = l.goOn(s, key); err != nil || l.Broken == "" {
			return errors.Join(err, l.begin(s.checkpoint.Origin))
		}
	default:
		l.Moved = s.Path
		if info, err := os.Stat(s.Path); err == nil && info.Size() < s.Size {
			l.Broken, l.Moved = s.Path+" is shorter than at its last checkpoint: records were removed", ""
		}
	}
	return l.begin(l.o.Name + "/" + strconv.Itoa(max(number, latest, 1)+1))
}

// goOn continues the log behind a checkpoint. Why says what is wrong with the file there.
func (l *Log) goOn(s *State, key *Key) (why string, err error) {
	path, size := newest(l.o.Files)
	if size < s.Size {
		return l.o.Path + " is shorter than at its last checkpoint: records were removed, or it is another file", nil
	}
	rest, err := readFrom(path, s.Size)
	if err != nil {
		return "", err
	}
	rest = rest[:bytes.LastIndexByte(rest, '\n')+1] // half a line is removed
	v, n := NewVerifier(VerifyOptions{Key: key, Place: l.o.Place, From: s}), 0
	for line := range bytes.Lines(rest) {
		n++
		v.Line(path, Text{Number: n, Text: bytes.TrimSuffix(line, []byte("\n"))})
	}
	switch {
	case v.Faulty > 0:
		return fmt.Sprintf("behind byte %d, where its last checkpoint stands: %s", s.Size, v.Faults[0]), nil
	case v.late > maxResumed:
		return fmt.Sprintf("%s has records behind the last checkpoint that the gate can't have written, such as record %d: they are not of the last %v before a kill", path, v.tree.Size-1, maxResumed), nil
	}
	l.tree, l.Covered, l.resumed = v.tree, v.Covered, v.tree.Size-v.Covered
	if path == l.o.Path {
		l.Continues = s.Size + int64(len(rest))
	}
	return "", nil
}

// readFrom returns what stands in a file from a byte on. Without a path that is nothing.
func readFrom(path string, start int64) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, start, math.MaxInt64-start))
}

// newest returns the newest file that is not empty, and its size. The newest of all is empty if the gate was killed when it
// had rotated it.
func newest(files []string) (path string, size int64) {
	for _, file := range files[:min(len(files), 2)] {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return file, info.Size()
		}
	}
	return "", 0
}

// suffix returns the number of a log among those of a name: 1 for NAME, N for NAME/N; 0: it is not one.
func suffix(name, log string) int {
	if log == name {
		return 1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(log, name+"/"))
	if err != nil || n < 2 || n > 1e9 || log != name+"/"+strconv.Itoa(n) {
		return 0
	}
	return n
}

// latest returns the highest number of the logs in files, each of which begins with a checkpoint.
func latest(name string, files []string) (n int) {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		text, _ := bufio.NewReaderSize(f, MaxLine).ReadSlice('\n')
		f.Close()
		if l, ok := ParseLine(text); ok {
			log, _ := l.Stated()
			n = max(n, suffix(name, log))
		}
	}
	return n
}
