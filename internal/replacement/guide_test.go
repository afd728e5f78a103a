package replacement

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestGuideNamesEveryReason that a replacement's phase has.
func TestGuideNamesEveryReason(t *testing.T) {
	t.Parallel()
	var guide strings.Builder
	for _, name := range []string{"karpenter", "terminations"} {
		text, err := os.ReadFile("../../docs/guides/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		guide.Write(text)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		if reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); err != nil || !strings.Contains(guide.String(), "`"+reason+"`") {
			t.Errorf("neither docs/guides/karpenter.md nor terminations.md names %s (%v)", reason, err)
		}
		return true
	})
}
