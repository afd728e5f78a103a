package lifecycle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The guide must have every message of status.lifecycleHooks.
func TestGuideExplainsEveryMessage(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/terminations.md")
	if err != nil {
		t.Fatal(err)
	}
	verb := regexp.MustCompile(`%[svd]`)
	found := 0
	for _, name := range []string{"termination.go", "termination_record.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || strings.Count(text, " ") < 4 {
				return true
			}
			found++
			parts := verb.Split(text, -1)
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			if !regexp.MustCompile(strings.Join(parts, "[^`\n]+")).MatchString(string(guide)) {
				t.Errorf("docs/guides/terminations.md does not have\n%s", text)
			}
			return true
		})
	}
	if found < 15 {
		t.Errorf("only %d messages", found)
	}
}
