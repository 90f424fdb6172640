package field

import (
	"errors"
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

// TestMistakes: a struct that knows neither its file nor its place can be checked alone, and in a list of a file.
func TestMistakes(t *testing.T) {
	var alone Mistakes
	if alone.Err() != nil {
		t.Errorf("nothing is wrong, got %v", alone.Err())
	}
	crawler{}.check(&alone)
	if got, want := alone.Err().Error(), "name: is missing\nlogin.user: is empty\nlogin: counts, since only a field in it has a mistake"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if e, ok := errors.AsType[*Error](alone.Err()); !ok || e.Field != "name" {
		t.Errorf("got %v", e)
	}

	file := From(source{"crawlers[1].login.user": true})
	list := file.In("crawlers[1]")
	list.Skip("login")
	crawler{}.check(list)
	if got, want := file.Err().Error(), "crawlers[1].name: is missing"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if !file.Bad("crawlers[1].name") || file.Bad("crawlers[1]") || list.Where("name") != "at crawlers[1].name" {
		t.Errorf("Bad or Where: got %v, %v, %s", file.Bad("crawlers[1].name"), file.Bad("crawlers[1]"), list.Where("name"))
	}
}

type source map[string]bool

func (s source) Given(path string) bool   { return s[path] }
func (s source) Where(path string) string { return "at " + path }

// TestJoin: dots that are part of a key stay.
func TestJoin(t *testing.T) {
	for _, test := range []struct{ path, field, want string }{
		{"", "a", "a"}, {"a", "", "a"}, {"a", "b", "a.b"}, {"", ".", "."}, {"a", ".", "a.."}, {"", "a.", "a."},
	} {
		if got := Join(test.path, test.field); got != test.want {
			t.Errorf("%q, %q: got %q, want %q", test.path, test.field, got, test.want)
		}
	}
}
