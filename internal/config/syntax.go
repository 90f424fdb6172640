package config

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// parse returns the root of the one document in data, nil if it is empty.
func parse(data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); err != io.EOF {
		return nil, cmp.Or(err, errors.New("yaml: second document"))
	}
	return doc.Content[0], nil
}

// explain returns the line of an error of parse, with its meaning. The line is the one after the longest beginning that
// parses: yaml.v3 names the start of the mapping that it was in, is off by one for some errors, and has no line for others.
func explain(data []byte, err error) (line int, text string) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	fails := func(n int) bool {
		_, err := parse(bytes.Join(lines[:n], nil))
		return err != nil
	}
	line = len(lines)
	// To parse 8 MiB takes half a second. The search may find a list of several lines, whose first lines alone do not parse.
	if len(lines)*len(data) > 8<<20 {
		line = sort.Search(line-1, func(i int) bool { return fails(i + 1) }) + 1
	}
	for fails(line - 1) {
		line--
	}
	text = err.Error()[strings.LastIndex(err.Error(), ": ")+1:]
	for _, t := range syntaxTexts {
		if regexp.MustCompile(t.yaml).MatchString(text) && bytes.Contains(lines[line-1], []byte(t.here)) {
			return line, t.text
		}
	}
	return line, "not readable as YAML:" + text
}

// syntaxTexts words errors of yaml.v3, recognised by a pattern of their text, for readers
// that do not know the YAML specification. Here is what their line must have.
var syntaxTexts = []struct{ yaml, here, text string }{
	{"second document", "", "a second document starts here: a configuration is one document, remove the --- and what follows"},
	{"cannot start any token", "\t", "a tab can't indent: use spaces"},
	{"cannot start any token", "", "a value that starts with @, % or ` must be in quotes"},
	{"", "${", "not readable as YAML: within [ ] and { } write \"${NAME}\" in quotes"},
	{"mapping values are not allowed", "", "a key isn't expected here: check the indentation, and put a value that has \": \" in it in quotes"},
	{"unknown anchor|expected alphabetic or numeric character", "", "a value that starts with * or & must be in quotes, unless it is an alias of an anchor"},
	{"unexpected end of stream", "", "a quote is opened here and never closed"},
	{"','|node content", "", "a [ or { isn't closed, or a comma is missing"},
	{"expected (key|':')", "", "expected \"key: value\" here: check the colon and the indentation"},
	{"control characters|UTF-8", "", "a character that text can't have: save the file as UTF-8"},
}
