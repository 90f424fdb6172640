package gate

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/config"
)

const exampleFile = "../../config.yaml"

func noEnv(string) (string, bool) { return "", false }

// TestExampleIsTheDefault: config.yaml has the default of every key.
func TestExampleIsTheDefault(t *testing.T) {
	c, err := LoadConfig(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	c.source = nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

// TestExampleHasEveryKey: config.yaml has every key, those of list items in comments, in
// the order of the structs and with a comment.
func TestExampleHasEveryKey(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^[ #-]*([a-z_]+):( .*)?$`)
	var found []string
	for _, m := range line.FindAllSubmatch(data, -1) {
		found = append(found, string(m[1]))
	}
	var want []string
	for _, path := range config.Paths(new(Config), "") {
		if !strings.HasPrefix(path, "crawlers.login.") { // which is on one line
			want = append(want, path[strings.LastIndexByte(path, '.')+1:])
		}
	}
	if !slices.Equal(found, want) {
		t.Errorf("got  %q\nwant %q", found, want)
	}
	for l := range strings.Lines(string(data)) {
		key := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if key != nil && strings.TrimSpace(key[2]) != "" && !strings.HasSuffix(key[2], "[]") && !strings.Contains(key[2], "#") {
			t.Errorf("no reason given: %s", l)
		}
	}
}

// TestExampleItems: the examples in config.yaml's comments are valid.
func TestExampleItems(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`(?m)^(crawlers|overrides): \[\]$`).ReplaceAll(data, []byte("$1:"))
	data = regexp.MustCompile(`(?m)^#(  +[- ] ?[a-z])`).ReplaceAll(data, []byte("$1"))
	c, err := ParseConfig("config.yaml", data, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Crawlers) != 1 || !reflect.DeepEqual(c.Crawlers[0], DefaultCrawler()) {
		t.Errorf("the crawler shown is not the default one: %+v", c.Crawlers)
	}
	if len(c.Overrides) != 1 || c.Overrides[0].Reason != "contract 2026-17" {
		t.Errorf("overrides: %+v", c.Overrides)
	}
}

func TestEmptyIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "--- # nothing\n...\n", "~\n", "\ufeff", "crawlers:\nrobots:\nlog: {}\n", "crawlers: []\negress: {ports: []}\n"} {
		c, err := ParseConfig("x.yaml", []byte(text), noEnv)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		c.source = nil
		if !reflect.DeepEqual(c, DefaultConfig()) {
			t.Errorf("%q: not the default", text)
		}
	}
}

func TestCrawlersOrDefault(t *testing.T) {
	if got := DefaultConfig().CrawlersOrDefault(); len(got) != 1 || got[0].Name != "default" || got[0].DenyStatus != 403 {
		t.Errorf("got %+v", got)
	}
}

// FuzzParse: a mistake cites a line that exists, in one line of text, and a configuration
// without mistakes is within its bounds.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	// Short inputs, so that many can be tried: each section of the file by itself.
	for section := range strings.SplitSeq(string(data), "\n\n") {
		f.Add([]byte(section))
	}
	f.Add([]byte("a: &a [*a]\nlisten: *a\ncrawlers: [{<<: &m {name: x, <<: *m}}]"))
	f.Add([]byte("overrides: [{hosts: ['*'], action: deny, reason: x, expires: 2027-03-01}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig("fuzz.yaml", data, func(name string) (string, bool) { return name, name != "UNSET" })
		if err == nil {
			if c.Robots.MaxAge <= 0 || c.Robots.MinAge > c.Robots.MaxAge || c.Limits.MaxConnections < 1 {
				t.Errorf("accepted: %+v", c)
			}
			c.Warnings()
			return
		}
		lines := 2 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029")) + bytes.Count(data, []byte("\u0085"))
		for _, m := range err.(config.Errors) {
			if m.Line < 1 || m.Line > lines || strings.ContainsAny(m.String(), "\n\r") {
				t.Errorf("%q (of %d lines)", m, lines)
			}
		}
	})
}
