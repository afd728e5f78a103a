package nodegroup_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestGuideNamesEveryFinding, and every reason of a condition.
func TestGuideNamesEveryFinding(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/node-groups.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	// The doctor's SARIF links to the anchor of each finding.
	linked := func(where, id string) {
		if !strings.Contains(string(guide), `<a id="`+id+`"></a>`) {
			t.Errorf("docs/guides/node-groups.md has no anchor of the finding %s, of %s", id, where)
		}
	}
	named := func(where, name string) {
		seen++
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/guides/node-groups.md does not name %s, of %s", name, where)
		}
	}
	paths, err := filepath.Glob("findings*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "../../controller/nodegroup/conditions.go") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // r.add(severity, id, …)
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "add" {
					if id, ok := n.Args[1].(*ast.BasicLit); ok {
						text, _ := strconv.Unquote(id.Value)
						named(path, text)
						linked(path, text)
					}
				}
			case *ast.ValueSpec: // reasonX = "…"
				for i, name := range n.Names {
					if i >= len(n.Values) {
						break
					}
					if value, ok := n.Values[i].(*ast.BasicLit); ok && strings.HasPrefix(name.Name, "reason") {
						text, _ := strconv.Unquote(value.Value)
						named(path, text)
					}
				}
			}
			return true
		})
	}
	for _, id := range []string{"launch-hook-missing", "terminate-hook-missing", "launch-hook-elsewhere", "terminate-hook-elsewhere"} {
		named("findings_hooks.go", id) // these are put together
		linked("findings_hooks.go", id)
	}
	if seen < 35 {
		t.Errorf("only %d are known: the test does not read them any more", seen)
	}
}
