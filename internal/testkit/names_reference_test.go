package testkit_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// namesParts are the sections of docs/reference/names.md: the constants of api/v1beta1 with one of the
// prefixes.
var namesParts = []struct{ title, text, prefixes string }{
	{"Phases", "The phase of an Interruption. It is empty until the first decision.", "Phase"},
	{"Conditions", "`Ready` and `Accepted` are on several kinds. `kubectl describe` shows the reason and the message of each.", "Condition"},
	{"Reasons", "Reasons of conditions, entries of the time line, and Kubernetes Events. [Log lines and Events](logs-and-events.md) has those to search for.", "Reason"},
	{"States of pods", "`status.drain.pods[].state` of an Interruption.", "PodWaiting PodSurging PodEvicting PodRefused PodLeaving PodLeft PodLost"},
	{"Reasons of pods", "`status.drain.pods[].reason` of an Interruption. The message says the same in a sentence.", "PodReason"},
	{"Outcomes", "`status.history[].outcome` of an Interruption.", "Outcome"},
	{"Labels, annotations and taints", "Lifeboat sets or reads these on nodes, pods and other objects.", "Taint Annotation Label Finalizer"},
}

// TestNamesReferenceIsCurrent writes the page from the comments of the constants.
func TestNamesReferenceIsCurrent(t *testing.T) {
	var want strings.Builder
	want.WriteString("# Phases, conditions, reasons and labels\n\n<!-- go test ./internal/testkit -run NamesReference -update writes this page from api/v1beta1. -->\n")
	all := constants(t, filepath.Join(root(t), "api", "v1beta1"))
	for _, part := range namesParts {
		fmt.Fprintf(&want, "\n## %s\n\n%s\n\n| name | meaning |\n|---|---|\n", part.title, part.text)
		rows := 0
		for _, c := range all {
			for prefix := range strings.FieldsSeq(part.prefixes) {
				if strings.HasPrefix(c.name, prefix) {
					rows++
					fmt.Fprintf(&want, "| `%s` | %s |\n", c.value, c.meaning)
				}
			}
		}
		if rows < 3 {
			t.Errorf("%s: only %d constants were found", part.title, rows)
		}
	}
	name := filepath.Join(root(t), "docs", "reference", "names.md")
	if *update {
		if err := os.WriteFile(name, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/reference/names.md differs from the code: run go test ./internal/testkit -run NamesReference -update\n%s", diff)
	}
}

type constant struct{ name, value, meaning string }

// constants returns the string constants of a package in the order of the source. One of namesParts
// without a comment fails the test.
func constants(t *testing.T, dir string) (all []constant) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				return true
			}
			for _, spec := range decl.Specs {
				if c, ok := readConstant(decl, spec); ok {
					all = append(all, c)
					if c.meaning == "" && namesPart(c.name) {
						t.Errorf("%s: %s has no comment: say what it means", filepath.Base(file), c.name)
					}
				}
			}
			return false
		})
	}
	return all
}

func readConstant(decl *ast.GenDecl, spec ast.Spec) (constant, bool) {
	v, ok := spec.(*ast.ValueSpec)
	if !ok || len(v.Values) != 1 {
		return constant{}, false
	}
	literal, ok := v.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return constant{}, false
	}
	value, err := strconv.Unquote(literal.Value)
	doc := v.Doc
	if doc == nil && !decl.Lparen.IsValid() {
		doc = decl.Doc
	}
	name := v.Names[0].Name
	meaning := strings.Join(strings.Fields(doc.Text()+" "+v.Comment.Text()), " ")
	meaning = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(meaning, name), ":"), " ")
	return constant{name, value, meaning}, err == nil
}

func namesPart(name string) bool {
	for _, part := range namesParts {
		for prefix := range strings.FieldsSeq(part.prefixes) {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}
