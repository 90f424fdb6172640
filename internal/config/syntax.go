package config

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

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

// maxTried bounds the bytes that syntaxLine parses line by line, to half a second.
const maxTried = 8 << 20

// syntaxLine returns the line of a syntax error: the line after the longest beginning
// that parses. The parser itself names the start of the mapping that it was in, is off by
// one for some errors, and names no line for others.
func syntaxLine(data []byte, parses func(beginning []byte) bool) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	readable := func(n int) bool { return parses(bytes.Join(lines[:n], nil)) }
	n := len(lines) - 1
	if len(lines)*len(data) > maxTried {
		// A large file is bisected. This may end at a list of several lines, since its
		// first lines alone do not parse.
		return sort.Search(n, func(i int) bool { return !readable(i + 1) }) + 1
	}
	for n > 0 && !readable(n) {
		n--
	}
	return n + 1
}

// syntaxTexts words errors of yaml.v3, recognised by a part of their text, for readers
// that do not know the YAML specification.
var syntaxTexts = []struct{ yaml, text string }{
	{"mapping values are not allowed", "a key isn't expected here: check the indentation, and put a value that has \": \" in it in quotes"},
	{"unknown anchor", "there is no anchor of the name after *: a value that starts with * must be in quotes"},
	{"expected alphabetic or numeric character", "a value that starts with * or & must be in quotes"},
	{"unexpected end of stream", "a quote is opened here and never closed"},
	{"','", "a [ or { isn't closed, or a comma is missing"},
	{"node content", "a [ or { isn't closed, or a comma is missing"},
	{"expected key", "expected \"key: value\" here: check the colon and the indentation"},
	{"expected ':'", "expected \"key: value\" here: check the colon and the indentation"},
	{"control characters", "a character that text can't have: save the file as UTF-8"},
	{"UTF-8", "a character that text can't have: save the file as UTF-8"},
}

// syntaxText words the error that parseYAML returned for data, at this line.
func syntaxText(data []byte, line int, err error) string {
	if errors.Is(err, errSecondDocument) {
		return err.Error()
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(text, "line ") {
		_, text, _ = strings.Cut(text, ": ")
	}
	lines := bytes.Split(data, []byte("\n"))
	here := string(lines[min(line, len(lines))-1])
	switch {
	case strings.Contains(text, "cannot start any token") && strings.Contains(here, "\t"):
		return "a tab can't indent: use spaces"
	case strings.Contains(text, "cannot start any token"):
		return "a value that starts with @, % or ` must be in quotes"
	case strings.Contains(here, "${"):
		return "not readable as YAML (" + text + "): within [ ] and { } write \"${NAME}\" in quotes"
	}
	for _, t := range syntaxTexts {
		if strings.Contains(text, t.yaml) {
			return t.text
		}
	}
	return "not readable as YAML: " + text
}
