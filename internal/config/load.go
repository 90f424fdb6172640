package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"robotsgate/internal/field"
)

// Load reads and checks the configuration at path, with the variables of the
// process's environment. If the file has mistakes the error is of type
// [Errors] and holds all of them.
func Load(path string) (*Config, error) {
	data, err := field.ReadOnce(path)
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
	data, err := field.ReadAll(in)
	if err != nil {
		return nil, Errors{{File: name, Text: err.Error()}}
	}
	return Parse(name, data, lookup)
}
