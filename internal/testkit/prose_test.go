package testkit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// proseRead are the functions that read a sentence, with the reason. Programs read fields: a sentence
// changes with each correction of its words.
var proseRead = map[string]string{
	"internal/cli/command/hint.go:HintAWS":                          "the AWS SDK has no type for missing credentials",
	"internal/cli/command/hint.go:IsNotInstalled":                   "the API server's answer for a resource that no CRD defines has no reason of its own",
	"internal/cli/doctor_admission.go:verdict":                      "an admission policy is named only in the message of the refusal",
	"internal/cli/doctor_unread.go:unreadFix":                       "the verb that RBAC refuses is only in the message",
	"internal/cli/doctor_writes.go:run":                             "a refused impersonation has the reason of any refusal",
	"internal/cli/doctor_writes.go:webhookFails":                    "a webhook that fails has the reason InternalError",
	"internal/cli/doctor_writes.go:withoutDryRun":                   "a webhook without dry runs has the reason BadRequest",
	"internal/cli/errors.go:isQueueDeny":                            "SQS says only in the message which policy denied a call",
	"internal/cloud/aws/lifecycle.go:classifyLifecycle":             "Auto Scaling has no code of its own for an action that is not pending",
	"internal/controller/interruption/status/timeline.go:groupPods": "the prefix of drills is written in the same file, for people",
	"internal/controller/sourcehealth/controller.go:kindOf":         "a condition has no field for the kind",
	"internal/controller/sourcehealth/controller.go:restore":        "a condition has no field for the cause",
	"internal/intake/apicall/apicall.go:Refusal":                    "CloudTrail names the instance of a call by token only in the message",
	"internal/intake/imds/policy.go:CheckPolicy":                    "an admission policy is named only in the message of the refusal",
	"internal/intake/poll/explain.go:Sort":                          "the AWS SDK has no type for missing credentials",
	"internal/migrate/text.go:syntaxError":                          "the YAML parser gives the line only in its text",
	"internal/intake/sqs/reach.go:reasonOf":                         "the AWS SDK has no type for missing credentials",
}

// readers are the functions and methods that search a text.
var readers = []string{
	"strings.Contains", "strings.HasPrefix", "strings.HasSuffix", "strings.Cut", "strings.CutPrefix", "strings.CutSuffix", "strings.Index",
	"strings.Split", "strings.SplitN", "strings.Fields", "strings.EqualFold",
	"MatchString", "FindString", "FindStringSubmatch", "FindAllString", // of regular expressions
}

// TestNoProseIsRead finds code that searches messages, reasons in sentences, and texts of errors.
func TestNoProseIsRead(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{"internal", "cmd", "api"} {
		top := filepath.Join(root(t), dir)
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testkit/") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			file, _ := filepath.Rel(root(t), path)
			for _, decl := range parsed.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && readsProse(f) {
					found[filepath.ToSlash(file)+":"+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range found {
		if proseRead[name] == "" {
			t.Errorf("%s reads a sentence: read a field instead, or add it to proseRead with the reason", name)
		}
	}
	for name := range proseRead {
		if !found[name] {
			t.Errorf("%s reads no sentence any more: remove it from proseRead", name)
		}
	}
	if len(found) < 5 {
		t.Errorf("only %d functions were found: does the search still work?", len(found))
	}
}

func readsProse(f *ast.FuncDecl) (reads bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		reads = reads || ok && (slices.Contains(readers, function.Sel.Name) || slices.Contains(readers, types.ExprString(function))) && isProse(call.Args[0])
		return true
	})
	return reads
}

// isProse reports whether an expression is a message, a sentence with a reason, or the text of an error.
func isProse(e ast.Expr) bool {
	text := types.ExprString(e)
	if lower, ok := strings.CutPrefix(text, "strings.ToLower("); ok {
		text = strings.TrimSuffix(lower, ")")
	}
	return slices.ContainsFunc([]string{".Message", ".Error()", ".ErrorMessage()", ".Why", ".Problem"}, func(end string) bool {
		return strings.HasSuffix(text, end)
	})
}
