package cli

import (
	"slices"
	"testing"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/confine"
)

func TestConfinedVars(t *testing.T) {
	vars := clientenv.Variables{
		{Name: "http_proxy", Value: "http://127.0.0.1:1"}, {Name: "no_proxy", Value: "localhost"}, {Name: "ROBOTSGATE_ADMIN", Value: "http://127.0.0.1:2"},
	}
	environ := []string{"http_proxy=http://another.gate", "HOME=/root", "ROBOTSGATE_ADMIN=http://127.0.0.1:3", "http_proxy=http://proxy.lan", "no_proxy=lan"}
	reach := []confine.Reach{{Host: "db.example", Port: 5432}, {Path: "/run/s"}, {Host: "10.0.0.1", Port: 80}}
	want := []string{"HOME=/root", "http_proxy=http://127.0.0.1:1", "no_proxy=localhost,db.example,10.0.0.1"}
	got := confinedVars(vars, environ, reach)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
