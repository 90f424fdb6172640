package field

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxFileBytes bounds a configuration, and every file that it names: it is far more than
// any list of crawlers needs, and a log given by mistake is refused at once.
const MaxFileBytes = 4 << 20

// ReadFile reads a configuration, or a file that a field names. A running gate reads it again at every reload, which a
// pipe does not allow: opening one may wait for ever. Errors don't name the path: the caller does.
func ReadFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, errors.New("is a pipe, which can't be read again: use a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err.(*fs.PathError).Err
	}
	defer f.Close()
	return ReadAll(f)
}

// ReadAll reads at most [MaxFileBytes].
func ReadAll(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, MaxFileBytes+1))
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, pe.Err
	}
	if err == nil && len(data) > MaxFileBytes {
		return nil, fmt.Errorf("larger than %s: is this the right file?", Size(MaxFileBytes))
	}
	return data, err
}
