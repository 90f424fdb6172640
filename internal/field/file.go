package field

import (
	"fmt"
	"io/fs"
	"os"
)

// MaxFileBytes bounds a configuration, and every file that it names: it is far more than
// any list of crawlers needs, and a log given by mistake is refused at once.
const MaxFileBytes = 4 << 20

// ReadFile reads a configuration, or a file that a field names.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&(fs.ModeDir|fs.ModeNamedPipe) != 0: // opening a pipe may wait for ever, and it can't be read again
		return nil, fmt.Errorf("%s: is a folder or a pipe: a file is needed", path)
	case info.Size() > MaxFileBytes:
		return nil, fmt.Errorf("%s: larger than %s: is this the right file?", path, Size(MaxFileBytes))
	}
	return os.ReadFile(path)
}
