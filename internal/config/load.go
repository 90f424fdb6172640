package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"robotsgate/internal/field"
)

// MaxFileBytes bounds a configuration, and every file that it names: it is far more than
// any list of crawlers needs, and a log given by mistake is refused at once.
const MaxFileBytes = 4 << 20

// Load reads and checks the configuration at path, with the variables of the
// process's environment. If the file has mistakes the error is of type
// [Errors] and holds all of them.
func Load(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Errors{{File: path, Text: err.Error()}}
	}
	return Parse(path, data, os.LookupEnv)
}

// Parse reads and checks the configuration in data. Mistakes name the file name, and
// relative paths start at its folder. Lookup returns environment variables.
func Parse(name string, data []byte, lookup func(string) (string, bool)) (*Config, error) {
	folder, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("the folder of %s: %w", name, err)
	}
	c := Default()
	c.decode(name, folder, data, lookup)
	c.check()
	if err := c.source.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// File returns the name of the file that the configuration is from; "" for the defaults.
func (c *Config) File() string { return c.source.file }

// Read is Parse for what in has. If that can't be read, or is too long, the error is of type
// [Errors] as well.
func Read(name string, in io.Reader, lookup func(string) (string, bool)) (*Config, error) {
	data, err := readAll(in)
	if err != nil {
		return nil, Errors{{File: name, Text: err.Error()}}
	}
	return Parse(name, data, lookup)
}

// readFile reads a file of at most MaxFileBytes. Its errors don't name the path: the
// caller does.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	return readAll(f)
}

func readAll(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, MaxFileBytes+1))
	if err != nil {
		return nil, fileError(err)
	}
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("larger than %s: is this the right file?", field.Size(MaxFileBytes))
	}
	return data, nil
}

// readNamed reads a file that a configuration names. A running gate reads it again at
// every reload, which a pipe does not allow: opening one may wait for ever.
func readNamed(path string) ([]byte, error) {
	if IsPipe(path) {
		return nil, errors.New("is a pipe, which can't be read again: use a file")
	}
	return readFile(path)
}

// IsPipe reports whether the file at path is a named pipe, such as a shell's <(command).
func IsPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

var errNoFile = errors.New("no such file")

// fileError returns err without the path, which the caller adds.
func fileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFile
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
