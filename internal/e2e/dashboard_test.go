package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/gatetest"
)

// A dashboard has the members of deploy/grafana.json that the test reads.
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

// TestDashboard compares the dashboard with the metrics of a gate that has served a request. It
// must query existing metrics only, and all metrics of the gate.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(gatetest.Read(t, "../../deploy/grafana.json")), &d); err != nil {
		t.Fatal(err)
	}
	var named strings.Builder
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: id used twice, no title, or position outside the grid", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%q covers %q", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%q: no description, no query, or wrong data source: %+v", p.Title, p.Datasource)
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
	for _, name := range gatetest.Matches(`\$(\w+)`, named.String()) {
		if !strings.HasPrefix(name, "__") && !slices.Contains(variables, name) {
			t.Errorf("the variable $%s is not defined", name)
		}
	}

	exist := metricNames(t)
	queried := queriedMetrics(named.String())
	for _, name := range queried {
		if !slices.Contains(exist, name) {
			t.Errorf("the dashboard queries %s, which does not exist", name)
		}
	}
	for _, name := range exist {
		if strings.HasPrefix(name, "robotsgate_") && !slices.Contains(queried, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// TestAlerts: the rules of deploy/alerts.yaml query existing metrics only, and each says what to do.
func TestAlerts(t *testing.T) {
	const file = "../../deploy/alerts.yaml"
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary, Description string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(gatetest.Read(t, file)), &rules); err != nil {
		t.Fatal(err)
	}
	exist := metricNames(t)
	for _, r := range rules.Groups[0].Rules {
		if r.Annotations.Summary == "" || len(r.Annotations.Description) < 40 {
			t.Errorf("%s has no summary or no remedy", r.Alert)
		}
		for _, name := range queriedMetrics(r.Expr) {
			if !slices.Contains(exist, name) {
				t.Errorf("%s queries %s, which does not exist", r.Alert, name)
			}
		}
	}
}

// metricNames returns the names of all metrics.
func metricNames(t *testing.T) []string {
	t.Helper()
	exist := gatetest.Matches("(?m)^# HELP (\\w+) ", exposed(t))
	return append(exist, gatetest.Matches(`"(robotsgate_\w+)"`, gatetest.Read(t, "../metrics/watch.go"))...) // the gate is in no fleet, and has no audit log
}

// queriedMetrics returns the names of the metrics in expressions.
func queriedMetrics(expressions string) (names []string) {
	for _, name := range gatetest.Matches(`\b((?:robotsgate|go|process)_[a-z_]+)`, expressions) {
		names = append(names, strings.TrimSuffix(name, "_bucket"))
	}
	return names
}

// exposed returns the metrics of a gate that has served a request.
func exposed(t *testing.T) string {
	t.Helper()
	gate := gatetest.Serve(t, t.TempDir(), "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"127.0.0.1:0\"}\n")
	gatetest.Request(t, gatetest.Client(t, gate.Proxy), http.MethodGet, "http://192.0.2.1/", http.StatusForbidden) // by the egress guard
	text, _ := gatetest.Request(t, gatetest.Client(t, ""), http.MethodGet, gate.Admin+"/metrics", http.StatusOK)
	return text
}
