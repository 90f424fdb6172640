package config

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// settings is a configuration as a program may have it.
type settings struct {
	Name string        `yaml:"name" restart:"yes" doc:"a name, such as a"`
	Wait time.Duration `yaml:"wait" positive:"yes"`
	Sizes
	Items  []item `yaml:"items"`
	Secret string `yaml:"secret" secret:"yes"`
	kept   int
}

// Sizes adds its keys to those of settings.
type Sizes struct {
	Most int64 `yaml:"most" restart:"yes"`
}

type item struct {
	Kind string `yaml:"kind" enum:"plain,fancy"`
}

func (i *item) SetDefaults() { i.Kind = "plain" }

func noVariables(string) (string, bool) { return "", false }

// TestDecode: the tags alone say what may be written, and an item of a list has its own defaults.
func TestDecode(t *testing.T) {
	s := settings{Wait: time.Second, kept: 7}
	source := Decode(&s, "x.yaml", "", []byte("name: b\nmost: 2KiB\nitems:\n- {}\n- kind: fancy\n"), noVariables)
	want := settings{Name: "b", Wait: time.Second, Sizes: Sizes{2048}, Items: []item{{"plain"}, {"fancy"}}, kept: 7}
	if err := source.Err(); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, %v\nwant %+v", s, err, want)
	}
	if !source.Given("most") || !source.Given("items[1].kind") || source.Given("wait") || source.Lines["items[1].kind"] != 5 {
		t.Errorf("given: %v", source.Lines)
	}
	source.In("items[1]").Add("kind", "is too %s", "fancy")
	if got, want := source.Err().Error(), "x.yaml:5: items.kind: is too fancy"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	s.Secret = "hunter2"
	text, err := Effective(&s)
	if err != nil || bytes.Contains(text, []byte("hunter2")) {
		t.Errorf("%v\n%s", err, text)
	}
	again := settings{kept: 7}
	if err := Decode(&again, "y.yaml", "", text, noVariables).Err(); err != nil || again.Most != 2048 || !slices.Equal(again.Items, s.Items) {
		t.Errorf("got %+v, %v from\n%s", again, err, text)
	}

	next := settings{Name: "c", Wait: time.Minute, Sizes: Sizes{1}}
	if kept := Restrain(&next, &s); !slices.Equal(kept, []string{"name", "most"}) || next.Name != "b" || next.Most != 2048 || next.Wait != time.Minute {
		t.Errorf("kept %q, %+v", kept, next)
	}
}

// TestDecodeMistakes: all mistakes of a file are reported, with suggestions from the tags.
func TestDecodeMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"5":                                "x.yaml:1: expected keys such as name:, got \"5\"",
		"wait: 0s\nmos: 1KiB\nname: [a]\n": "x.yaml:1: wait: expected a duration with its unit, such as 24h, 5m or 10s, more than 0, got \"0s\"\nx.yaml:2: unknown key mos: did you mean most?\nx.yaml:3: name: expected a name, such as a, got a list",
		"items: [{kind: fanci}]":           "x.yaml:1: items.kind: expected plain or fancy, got \"fanci\"",
		"kind: plain":                      "x.yaml:1: unknown key kind: expected one of name, wait, most, items, secret",
		"name: ${UNSET}":                   "x.yaml:1: name: the environment variable UNSET is not set: set it, or write the value here",
	} {
		err := Decode(&settings{Name: "b"}, "x.yaml", "", []byte(text), noVariables).Err()
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", strings.TrimSpace(text), err, want)
		}
	}
	if source := Decode(new(settings), "x.yaml", "", []byte("# nothing"), noVariables); source.Err() != nil || len(source.Lines) > 0 {
		t.Errorf("an empty file: %v", source.Err())
	}
}

// TestManyValues: aliases behind a key that is no word are bounded too.
func TestManyValues(t *testing.T) {
	var s settings
	text := "? [a]\n: b\nitems:\n- &i {kind: plain}\n" + strings.Repeat("- *i\n", maxValues)
	err := Decode(&s, "x.yaml", "", []byte(text), noVariables).Err()
	if err == nil || !strings.Contains(err.Error(), "x.yaml:1: more than 200000 values") || len(s.Items) > 0 {
		t.Errorf("got %v, %d items", err, len(s.Items))
	}
}
