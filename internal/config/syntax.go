package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
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
func syntaxLine(data []byte) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	fails := func(n int) bool {
		_, err := parseYAML(bytes.Join(lines[:n], nil))
		return err != nil
	}
	n := len(lines) - 1
	if len(lines)*len(data) > maxTried {
		// A large file is bisected. This may end at a list of several lines, since its
		// first lines alone do not parse.
		return sort.Search(n, func(i int) bool { return fails(i + 1) }) + 1
	}
	for n > 0 && fails(n) {
		n--
	}
	return n + 1
}

// syntaxTexts words errors of yaml.v3, recognised by a pattern of their text, for readers
// that do not know the YAML specification. Here is what their line must have.
var syntaxTexts = []struct{ yaml, here, text string }{
	{"cannot start any token", "\t", "a tab can't indent: use spaces"},
	{"cannot start any token", "", "a value that starts with @, % or ` must be in quotes"},
	{"", "${", "not readable as YAML: within [ ] and { } write \"${NAME}\" in quotes"},
	{"mapping values are not allowed", "", "a key isn't expected here: check the indentation, and put a value that has \": \" in it in quotes"},
	{"unknown anchor", "", "there is no anchor of the name after *: a value that starts with * must be in quotes"},
	{"expected alphabetic or numeric character", "", "a value that starts with * or & must be in quotes"},
	{"unexpected end of stream", "", "a quote is opened here and never closed"},
	{"','|node content", "", "a [ or { isn't closed, or a comma is missing"},
	{"expected (key|':')", "", "expected \"key: value\" here: check the colon and the indentation"},
	{"control characters|UTF-8", "", "a character that text can't have: save the file as UTF-8"},
}

// yamlPrefix is what yaml.v3 puts before the text of an error; its line is often another.
var yamlPrefix = regexp.MustCompile(`^yaml: (line [0-9]+: )?`)

// syntaxText words the error that parseYAML returned for data, at this line.
func syntaxText(data []byte, line int, err error) string {
	if errors.Is(err, errSecondDocument) {
		return err.Error()
	}
	text := yamlPrefix.ReplaceAllString(err.Error(), "")
	lines := strings.Split(string(data), "\n")
	for _, t := range syntaxTexts {
		if regexp.MustCompile(t.yaml).MatchString(text) && strings.Contains(lines[min(line, len(lines))-1], t.here) {
			return t.text
		}
	}
	return "not readable as YAML: " + text
}
