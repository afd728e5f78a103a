package testkit_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIntakeHasNoControllerCallback checks that intake and controllers share only the Interruption
// object. The import rules cannot see a method value or a closure of a controller that the composition
// root passes to intake. So this test reads the source of the root.
func TestIntakeHasNoControllerCallback(t *testing.T) {
	dir := filepath.Join(root(t), "internal", "app")
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no sources in %s: %v", dir, err)
	}
	intakeImported := false
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found, imported, err := callbacks(filepath.Base(name), string(text))
		if err != nil {
			t.Fatal(err)
		}
		intakeImported = intakeImported || imported
		for _, f := range found {
			t.Error(f)
		}
	}
	if !intakeImported {
		t.Error("internal/app imports nothing of internal/intake: this test checks nothing")
	}
}

// callbacks lists the functions of a file that use intake and a controller at the same
// time. It also reports whether the file imports intake. A function that builds both could
// connect them; one that builds one of them cannot, unless the other is handed to it, and
// then its parameters name the type.
func callbacks(name, text string) (found []string, importsIntake bool, err error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, false, err
	}
	intake, controllers := importNames(f, module+"/internal/intake"), importNames(f, module+"/internal/controller")
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		if i, c := firstUse(d, intake), firstUse(d, controllers); i != "" && c != "" {
			found = append(found, fmt.Sprintf("%s: a declaration uses both %s and %s: build intake and controllers in separate functions, without passing one to the other",
				files.Position(d.Pos()), i, c))
		}
	}
	return found, len(intake) > 0, nil
}

// importNames returns the names by which a file imports the packages below a path.
func importNames(f *ast.File, path string) []string {
	var names []string
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil || p != path && !strings.HasPrefix(p, path+"/") {
			continue
		}
		if i.Name != nil {
			names = append(names, i.Name.Name)
		} else {
			names = append(names, p[strings.LastIndexByte(p, '/')+1:])
		}
	}
	return names
}

// firstUse returns the first identifier of one of the packages in a declaration.
func firstUse(d ast.Decl, packages []string) string {
	var use string
	ast.Inspect(d, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || use != "" {
			return use == ""
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains(packages, x.Name) {
			use = x.Name + "." + s.Sel.Name
		}
		return true
	})
	return use
}

func TestCallbacksAreFound(t *testing.T) {
	const head = `package app
import (
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	queue "github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)
`
	for name, tc := range map[string]struct {
		body string
		want int
	}{
		"built apart":               {"func a() { _ = intake.Options{} }\nfunc b() { _ = interruption.Options{} }", 0},
		"a method value is passed":  {"func a(l *interruption.Controller) { _ = intake.Options{Expect: l.Expect} }", 1},
		"under another import name": {"func a(l *interruption.Controller) { _ = queue.Options{Rush: l.Rush} }", 1},
		"built in one function":     {"func a() { l := interruption.New(); _ = intake.Options{Expect: l.Expect} }", 1},
		"kept side by side":         {"type deps struct { loop *interruption.Controller; recorder *intake.Recorder }", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, imported, err := callbacks("a.go", head+tc.body)
			if err != nil || !imported {
				t.Fatalf("imports intake %t, error %v", imported, err)
			}
			if diff := cmp.Diff(tc.want, len(got)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", got, diff)
			}
		})
	}
}
