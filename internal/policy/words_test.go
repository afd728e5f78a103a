package policy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// verb matches a verb of a format.
var verb = regexp.MustCompile(`%(\[\d+\])?[qsvdw]`)

// blank writes a form as the guide does, with … for its values.
func blank(form string) string {
	return strings.ReplaceAll(verb.ReplaceAllString(form, "…"), "%%", "%")
}

// forms returns the forms of all problems that Validate can report, by name.
func forms(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "words.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "form" {
			t.Errorf("%s is no form", spec.Names[0].Name)
			return false
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Error(err)
		}
		found[spec.Names[0].Name] = text
		return false
	})
	if len(found) < 30 {
		t.Fatalf("only %d forms", len(found))
	}
	return found
}

// hookSentences returns the problem texts of package hook.
func hookSentences(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../hooks/check.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Name.Name != "sample"
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && err == nil && strings.Count(text, " ") >= 3 && text[0] != ' ' {
				found = append(found, strings.TrimRight(text, ": "))
			}
		}
		return true
	})
	if len(found) < 10 {
		t.Fatalf("only %d sentences", len(found))
	}
	return found
}

// Each message in the guide must be the result of some invalid policy.
func TestEveryFormIsUsed(t *testing.T) {
	met := map[string]bool{}
	all := forms(t)
	for _, c := range wrongs() {
		for _, problem := range policy.Validate(c.spec) {
			for name, form := range all {
				if regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(blank(form)), "…", ".+") + "$").MatchString(problem) {
					met[name] = true
				}
			}
		}
	}
	for name := range all {
		if !met[name] {
			t.Errorf("no policy of the table causes %s", name)
		}
	}
}

// crdMessages returns the messages of the CRD's own rules, as the guide writes them.
func crdMessages(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../charts/lifeboat/crds/lifeboat.dev_interruptionpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var found []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			rules, _ := v["x-kubernetes-validations"].([]any)
			for _, r := range rules {
				found = append(found, ruleMessage(r.(map[string]any)))
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(crd)
	slices.Sort(found)
	return slices.Compact(found)
}

// ruleMessage is the message of a rule of the CRD; an expression joins strings with the user's values.
func ruleMessage(rule map[string]any) string {
	if message, ok := rule["message"].(string); ok {
		return message
	}
	expression := fmt.Sprint(rule["messageExpression"])
	return strings.Trim(strings.ReplaceAll(expression, "' + self + '", "…"), "'")
}

// The messages of Validate, of the CRD and of hooks must be in the guide.
func TestGuideExplainsEveryMessage(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Every message\n")
	if !ok {
		t.Fatal("the guide has no list of messages")
	}
	messages := crdMessages(t)
	for _, form := range forms(t) {
		messages = append(messages, blank(form))
	}
	for _, sentence := range hookSentences(t) {
		messages = append(messages, blank(sentence))
	}
	slices.Sort(messages)
	for _, message := range slices.Compact(messages) {
		// Quoted values, and the API server's prefix, are not compared.
		pattern := strings.ReplaceAll(regexp.QuoteMeta(quotes(message)), "…", "[^`\n]+")
		if !regexp.MustCompile(pattern).MatchString(quotes(table)) {
			t.Errorf("docs/guides/policy.md does not have\n%s", message)
		}
	}
}

func quotes(s string) string { return strings.ReplaceAll(s, `"…"`, "…") }
