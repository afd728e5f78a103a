package testkit_test

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// passive matches most sentences in the passive voice, and some others.
var passive = regexp.MustCompile(`\b(is|are|was|were|been|being)\s+(\w+ly\s+)?\w+(ed|en)\b`)

// marker matches the markers of controller-gen.
var marker = regexp.MustCompile(`(?m)^\+.*$`)

func TestCommentsHaveShortSentences(t *testing.T) {
	comments, passives := 0, 0
	texts(t, " .go ", func(name, text string) {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "zz_generated") {
			return
		}
		for _, c := range exportedComments(t, name, text) {
			comments++
			for _, s := range sentences(c) {
				if passive.MatchString(s) {
					passives++
				}
				if n := len(strings.Fields(s)); n > maxWords {
					t.Errorf("%s: a sentence of %d words, at most %d: %s", name, n, maxWords, s)
				}
			}
		}
	})
	if comments < 1000 {
		t.Errorf("only %d comments were read", comments)
	}
	t.Logf("%d comments; about %d sentences are in the passive voice", comments, passives)
}

// exportedComments returns the package comment of a file, and the comments of its exported
// declarations, as Markdown without lists of links and code.
func exportedComments(t *testing.T, name, text string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(g *ast.CommentGroup) {
		if g != nil {
			var p comment.Parser
			markdown := string((&comment.Printer{}).Markdown(p.Parse(marker.ReplaceAllString(g.Text(), ""))))
			all = append(all, strings.ReplaceAll(markdown, "\t", "    "))
		}
	}
	add(f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				add(d.Doc)
			}
		case *ast.GenDecl:
			add(d.Doc)
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
					add(s.Doc)
				}
			}
		}
	}
	return all
}
