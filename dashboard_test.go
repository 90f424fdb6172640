package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// A dashboard is as much of deploy/grafana.json as is looked at.
type dashboard struct {
	Title         string
	SchemaVersion int
	Panels        []struct {
		ID          int
		Type, Title string
		Description string
		Datasource  struct{ Type, UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ RefID, Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Type, Query any }
	}
}

// TestDashboard holds the dashboard against what a gate that has served a request
// tells Prometheus: it names nothing that there is not, and leaves out none of ours.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "deploy/grafana.json")), &d); err != nil {
		t.Fatal(err)
	}
	var named strings.Builder
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: its number is taken, its title missing or its place outside", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%q lies over %q", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%q: no description, no query, or another data source: %+v", p.Title, p.Datasource)
		}
		for _, target := range p.Targets {
			named.WriteString(target.Expr + "\n")
		}
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, fmt.Sprint(v.Name))
		named.WriteString(fmt.Sprint(v.Query) + "\n")
	}
	for _, name := range found(`\$(\w+)`, named.String()) {
		if !strings.HasPrefix(name, "__") && !slices.Contains(variables, name) {
			t.Errorf("there is no variable $%s", name)
		}
	}

	is := found("(?m)^# HELP (\\w+) ", exposed(t))
	var said []string
	for _, name := range found(`\b((?:robotsgate|go|process)_[a-z_]+)`, named.String()) {
		name = strings.TrimSuffix(name, "_bucket")
		said = append(said, name)
		if !slices.Contains(is, name) {
			t.Errorf("the dashboard asks for %s, which there is not", name)
		}
	}
	for _, name := range is {
		if strings.HasPrefix(name, "robotsgate_") && !slices.Contains(said, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// exposed returns what a gate that has served a request tells Prometheus.
func exposed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "gate.yaml")
	write(t, file, "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"127.0.0.1:0\"}\n")
	gate, err := gatetest.StartGate(exec.Command("robotsgate", "serve", "-c", file), t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	}()
	proxy, err := url.Parse(gate.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	through := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	defer through.CloseIdleConnections()
	get(t, through, http.MethodGet, "http://192.0.2.1/", http.StatusForbidden) // the guard's
	direct := &http.Client{Transport: &http.Transport{}}
	defer direct.CloseIdleConnections()
	text, _ := get(t, direct, http.MethodGet, gate.Admin+"/metrics", http.StatusOK)
	return text
}
