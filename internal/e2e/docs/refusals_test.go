package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/pace"
)

// TestRefusals: docs/agents.md has a row for each type and each title of the gate's answers, and for no other.
func TestRefusals(t *testing.T) {
	table := section(t, "docs/agents.md", "What the agent sees")
	var said []string
	for line := range strings.Lines(table) {
		if row := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(row) == 4 && row[1] != "title" {
			said = append(said, strings.Split(row[1], "; ")...)
		}
	}
	types, titles := answers(t)
	same(t, "title of an answer", said, titles)
	same(t, "type of an answer", slices.DeleteFunc(cells(table, 0), func(name string) bool { return name == "type" }), types)
}

// answers returns the types, without "urn:robotsgate:", and the titles of the gate's answers, from the source of package
// proxy.
func answers(t *testing.T) (types, titles []string) {
	t.Helper()
	files, err := filepath.Glob("proxy/*.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := source(t, "policy/decision.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		add := func(fields map[string]ast.Expr) {
			kind := fields["kind"]
			if kind == nil {
				kind = fields["fault"]
			}
			types = append(types, text(kind)...)
			titles = append(titles, text(fields["title"])...)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); !ok || id.Name != "answer" {
					return true
				}
				fields := map[string]ast.Expr{}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						fields[kv.Key.(*ast.Ident).Name] = kv.Value
					}
				}
				add(fields)
				if status, ok := fields["status"].(*ast.SelectorExpr); ok && fields["title"] == nil {
					titles = append(titles, statusText(t, status.Sel.Name))
				}
			case *ast.AssignStmt:
				fields := map[string]ast.Expr{}
				for i, left := range n.Lhs {
					if s, ok := left.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) {
						fields[s.Sel.Name] = n.Rhs[i]
					}
				}
				add(fields)
			case *ast.FuncDecl:
				switch n.Name.Name {
				case "refusal": // a case for each reason to deny, which is the type
					for _, c := range gatetest.Matches(`case policy\.(\w+):`, function(t, name, n)) {
						types = append(types, gatetest.Matches(`\b`+c+` +Reason = "([a-z-]+)"`, reasons)...)
					}
				case "explainReserved": // returns the title
					titles = append(titles, gatetest.Matches(`return "([^"]+)", `, function(t, name, n))...)
				}
			}
			return true
		})
	}
	// The rules of package pace are types, too.
	types = append(types, string(pace.ByBudget))
	// So are the faults of an answer that cannot be read.
	types = append(types, gatetest.Matches(`Fault += "([a-z_]+)"`, source(t, "proxy/internal/origin/unreadable.go"))...)
	for _, all := range []*[]string{&types, &titles} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	if len(types) < 20 || len(titles) < 20 {
		t.Errorf("only %d types and %d titles found", len(types), len(titles))
	}
	return types, titles
}

// function returns the text of a function.
func function(t *testing.T, file string, f *ast.FuncDecl) string {
	t.Helper()
	return gatetest.Read(t, file)[f.Pos()-1 : f.End()-1] // the only file of its set begins at 1
}

// text returns the constant text of an expression, with an ellipsis if more follows.
func text(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && s != "" {
			return []string{s}
		}
	case *ast.BinaryExpr:
		for _, s := range text(e.X) {
			return []string{s + "…"}
		}
	}
	return nil
}

// statusText returns the text of a status that the code names, such as StatusBadRequest.
func statusText(t *testing.T, name string) string {
	t.Helper()
	for code := range 600 {
		text := http.StatusText(code)
		if text != "" && "Status"+strings.NewReplacer(" ", "", "-", "").Replace(text) == name {
			return text
		}
	}
	t.Errorf("no status has the name %s", name)
	return ""
}
