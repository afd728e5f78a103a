package lifecycle_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

var (
	rowOf   = regexp.MustCompile(`^\| R(\d+) \|`)
	testIn  = regexp.MustCompile("`(internal/[a-z/]+)` (TestRace(\\d\\d)[A-Za-z0-9]+)")
	isRace  = regexp.MustCompile(`^TestRace\d\d`)
	columns = 5
)

// TestEveryRaceHasItsTests checks docs/races.md against the tree: every test that it names
// exists, and every test of a race is named.
func TestEveryRaceHasItsTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "races.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := raceTests(t)
	named := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(page)) {
		row := rowOf.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		rows++
		if row[1] != fmt.Sprint(rows) || strings.Count(line, " | ") != columns-1 {
			t.Errorf("row %d is R%s, or has not %d columns", rows, row[1], columns)
		}
		tests := testIn.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 || len(tests) != strings.Count(line, "TestRace") {
			t.Errorf("R%s names no test, or one that cannot be read", row[1])
		}
		for _, test := range tests {
			if test[3] != fmt.Sprintf("%02d", rows) {
				t.Errorf("R%s names %s, which is for another race", row[1], test[2])
			}
			at := ""
			for path := range there[test[2]] {
				if path == test[1] || strings.HasPrefix(path, test[1]+"/") {
					at = path
				}
			}
			if at == "" {
				t.Errorf("R%s: there is no %s in or beneath %s", row[1], test[2], test[1])
			}
			named[at+" "+test[2]] = true
		}
	}
	if rows != 35 {
		t.Errorf("%d rows, of 35", rows)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		for path := range there[name] {
			if !named[path+" "+name] {
				t.Errorf("docs/races.md does not name %s in %s", name, path)
			}
		}
	}
}

// raceTests returns the directories with tests of races, by name of the test.
func raceTests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && isRace.MatchString(f.Name.Name) {
				if found[f.Name.Name] == nil {
					found[f.Name.Name] = map[string]bool{}
				}
				found[f.Name.Name][filepath.ToSlash(dir)] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
