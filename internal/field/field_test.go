package field

import (
	"slices"
	"testing"
)

// crawler is a struct as a part has it.
type crawler struct{ name, user string }

func (c crawler) check(m *Mistakes) {
	m.Require(c.name != "", "name", "is missing")
	m.Require(c.name != "", "name", "is missing again") // follows from the first
	login := m.In("login")
	login.Require(c.user != "" || !login.Given("user"), "user", "is empty")
	m.In("login").Add("", "counts, since only a field in it has a mistake")
	m.Add("login.user.x", "does not count, since login.user or login has a mistake")
}

// TestMistakes: a struct that knows neither its file nor its place can be checked in a list of a file.
func TestMistakes(t *testing.T) {
	file := New("gate.yaml")
	file.Lines["crawlers[1].login.user"] = 7
	first, second := file.In("crawlers[0]"), file.In("crawlers[1]")
	crawler{user: "news"}.check(first)
	crawler{}.check(second)
	third := file.In("crawlers[2]")
	third.Skip("login")
	crawler{name: "c"}.check(third)
	var got []string
	for _, e := range file.all {
		got = append(got, e.Error())
	}
	want := []string{
		"crawlers.name: is missing", "crawlers.login: counts, since only a field in it has a mistake",
		"crawlers.name: is missing", "gate.yaml:7: crawlers.login.user: is empty", "crawlers.login: counts, since only a field in it has a mistake",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if !file.Bad("crawlers[1].name") || file.Bad("crawlers[1]") {
		t.Errorf("Bad: got %v, %v", file.Bad("crawlers[1].name"), file.Bad("crawlers[1]"))
	}
}
