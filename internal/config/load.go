package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"
)

// MaxFileBytes bounds what is read: far more than any list of crawlers needs,
// and little enough that a log given by mistake is refused at once.
const MaxFileBytes = 4 << 20

// Load reads and checks the configuration at path, with the variables of the
// process's environment. If the file has mistakes the error is of type
// [Errors] and holds all of them.
func Load(path string) (*Config, error) {
	data, err := readFile(path, MaxFileBytes)
	if err != nil {
		return nil, Errors{{File: path, Text: err.Error()}}
	}
	return Parse(path, data, os.LookupEnv)
}

// Parse reads and checks the configuration in data. The name stands in
// mistakes, and relative paths start at its folder; lookup finds the values of
// environment variables.
func Parse(name string, data []byte, lookup func(string) (string, bool)) (*Config, error) {
	c := Default()
	c.source = source{file: name, lines: map[string]int{}, bad: map[string]bool{}}
	root, err := parseYAML(data)
	if err != nil {
		line := syntaxLine(data, func(beginning []byte) bool {
			_, err := parseYAML(beginning)
			return err == nil
		})
		c.source.add(line, "%s", syntaxText(data, line, err))
		return nil, c.source.sorted()
	}
	d := decoder{source: &c.source, lookup: lookup}
	d.document(root, c)
	folder, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("the folder of %s: %w", name, err)
	}
	c.resolvePaths(folder)
	c.check()
	if err := c.source.sorted(); err != nil {
		return nil, err
	}
	return c, nil
}

// errSecondDocument is returned by parseYAML; yaml.v3 would ignore the rest.
var errSecondDocument = errors.New("a second document starts here: a configuration is one document, remove the --- and what follows")

// parseYAML returns the root of the one document in data, nil if it is empty.
func parseYAML(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var docs [2]yaml.Node
	for i := range docs {
		switch err := dec.Decode(&docs[i]); {
		case err == io.EOF && i == 0:
			return nil, nil
		case err == io.EOF:
			return docs[0].Content[0], nil
		case err != nil:
			return nil, err
		}
	}
	return nil, errSecondDocument
}

// maxTried bounds the bytes that syntaxLine has parsed line by line, which takes half
// a second at most.
const maxTried = 8 << 20

// syntaxLine finds the line to look at for a file that isn't YAML. The parser
// names the start of the mapping it was in, is off by one for some errors and
// names no line for others; the line after the longest readable beginning is
// what a person would point at.
func syntaxLine(data []byte, parses func(beginning []byte) bool) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	readable := func(n int) bool { return parses(bytes.Join(lines[:n], nil)) }
	if len(lines)*len(data) <= maxTried {
		for n := len(lines) - 1; n > 0; n-- {
			if readable(n) {
				return n + 1
			}
		}
		return 1
	}
	// To try every beginning of a larger file takes too long. Halving may end
	// at a list of several lines instead, where one that is fine looks unclosed.
	good, bad := 0, len(lines)
	for bad-good > 1 {
		if n := (good + bad) / 2; readable(n) {
			good = n
		} else {
			bad = n
		}
	}
	return bad
}

// syntaxText says what is wrong in words that don't need the YAML standard.
func syntaxText(data []byte, line int, err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(text, "line ") {
		_, text, _ = strings.Cut(text, ": ")
	}
	lines := bytes.Split(data, []byte("\n"))
	here := string(lines[min(line, len(lines))-1])
	switch {
	case errors.Is(err, errSecondDocument):
		return text
	case strings.Contains(text, "cannot start any token") && strings.Contains(here, "\t"):
		return "a tab can't indent: use spaces"
	case strings.Contains(text, "cannot start any token"):
		return "a value that starts with @, % or ` must be in quotes"
	case strings.Contains(here, "${"):
		return "not readable as YAML (" + text + "): within [ ] and { } write \"${NAME}\" in quotes"
	case strings.Contains(text, "mapping values are not allowed"):
		return "a key isn't expected here: check the indentation, and put a value that has \": \" in it in quotes"
	case strings.Contains(text, "unknown anchor"):
		return "there is no anchor of the name after *: a value that starts with * must be in quotes"
	case strings.Contains(text, "expected alphabetic or numeric character"):
		return "a value that starts with * or & must be in quotes"
	case strings.Contains(text, "unexpected end of stream"):
		return "a quote is opened here and never closed"
	case strings.Contains(text, "','"), strings.Contains(text, "node content"):
		return "a [ or { isn't closed, or a comma is missing"
	case strings.Contains(text, "expected key"), strings.Contains(text, "expected ':'"):
		return "expected \"key: value\" here: check the colon and the indentation"
	case strings.Contains(text, "control characters"), strings.Contains(text, "UTF-8"):
		return "a character that text can't have: save the file as UTF-8"
	}
	return "not readable as YAML: " + text
}

// pipePatience is how long a pipe may take: a shell's <(command) has its own time.
const pipePatience = 10 * time.Second

// readFile reads a file of at most limit bytes; its errors don't repeat the
// path, which the caller is about to print. It does not wait for a pipe that
// nobody writes to, as a shell's <(command) is when it is read again.
func readFile(path string, limit int64) ([]byte, error) {
	flags, pipe := os.O_RDONLY, isPipe(path)
	if pipe {
		flags |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	if pipe {
		_ = f.SetReadDeadline(time.Now().Add(pipePatience)) // where there is none, it is a file by now
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if pipe && (len(data) == 0 && err == nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		return nil, errors.New("nothing comes out of this pipe: use a file, which can be read again")
	}
	if err != nil {
		return nil, fileError(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %v: is this the right file?", Size(limit))
	}
	return data, nil
}

// readNamed reads a file that a configuration names.
func readNamed(path string) ([]byte, error) {
	if isPipe(path) {
		return nil, errors.New("is a pipe, which can't be read again: use a file")
	}
	return readFile(path, MaxFileBytes)
}

func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("not readable by this user: change its owner or permissions")
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
