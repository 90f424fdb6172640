package field

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// MaxFileBytes bounds a configuration, and every file that it names: it is far more than
// any list of crawlers needs, and a log given by mistake is refused at once.
const MaxFileBytes = 4 << 20

// ReadFile reads a configuration, or a file that a field names. Errors don't name the path: the caller does.
func ReadFile(path string) (data []byte, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.Mode()&(fs.ModeDir|fs.ModeNamedPipe) != 0: // opening a pipe may wait for ever, and it can't be read again
		err = errors.New("is a folder or a pipe: a file is needed")
	case info.Size() > MaxFileBytes:
		err = fmt.Errorf("larger than %s: is this the right file?", Size(MaxFileBytes))
	default:
		data, err = os.ReadFile(path)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return data, err
}
