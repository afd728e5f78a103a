package template

import (
	"bytes"
	"path"
	"regexp"
	"slices"
)

// otherLanguages are languages that this package does not read, with what to give
// instead.
var otherLanguages = []struct {
	matches *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?m)^runtime:\s*(nodejs|python|go|dotnet|java|yaml)\b|^apiVersion:\s*pulumi\.com/`),
		"it is a Pulumi program: " + deployed},
	{regexp.MustCompile(`(?m)^apiVersion:\s*([a-z]+\.aws(\.m)?\.(upbound|crossplane)\.io|apiextensions\.crossplane\.io)/`),
		"it is a Crossplane manifest: " + deployed},
}

// deployed is what to give instead of a program.
const deployed = "give the deployed rules instead, as aws events describe-rule and list-targets-by-rule print them"

// programs are the extensions of programs of CDK and Pulumi.
var programs = []string{".ts", ".js", ".py", ".go", ".java", ".cs"}

// otherLanguage says what to give instead of a file in another language, or "".
func otherLanguage(name string, data []byte) string {
	if slices.Contains(programs, path.Ext(name)) {
		return "it is a program: for CDK, give the directory cdk.out that cdk synth writes; for Pulumi, " + deployed
	}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return ""
	}
	for _, l := range otherLanguages {
		if l.matches.Match(data) {
			return l.instead
		}
	}
	return ""
}
