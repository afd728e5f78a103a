package pattern

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxFixes limits the number of corrections to one pattern.
const maxFixes = 16

// Fix corrects a pattern: it replaces misspelt keys, sources, detail-types and values, separates detail-types that
// exclude each other, and wraps scalars that must be arrays. The result compiles and has fewer lint findings. It returns false if it cannot infer such a correction.
func Fix(text string) (string, bool) {
	fixed := text
	if _, err := Compile([]byte(text)); err != nil {
		fixed = wrapInArrays(text)
	}
	before := countFindings(text)
	for range maxFixes {
		next, ok := fixOne(fixed)
		if !ok {
			break
		}
		fixed = next
	}
	after := countFindings(fixed)
	return fixed, fixed != text && after >= 0 && (before < 0 || after < before)
}

// countFindings returns the number of errors and warnings of Lint, or -1 for a pattern that does not compile.
func countFindings(text string) int {
	p, err := Compile([]byte(text))
	if err != nil {
		return -1
	}
	n := 0
	for _, f := range Lint(p).Findings {
		if f.Severity != SeverityAdvice {
			n++
		}
	}
	return n
}

// fixOne makes the first possible correction.
func fixOne(text string) (string, bool) {
	p, err := Compile([]byte(text))
	if err != nil {
		return "", false
	}
	for _, f := range Lint(p).Findings {
		if f.Code == "dead-detail-type" {
			return separate(text)
		}
		if f.wrong == "" || !strings.Contains(text, f.wrong) {
			continue
		}
		return strings.ReplaceAll(text, f.wrong, f.right), true
	}
	return "", false
}

// wrapInArrays wraps every scalar in an array.
func wrapInArrays(text string) string {
	var root map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return text
	}
	wrapScalars(root)
	return encode(root, text)
}

// encode returns a pattern as text, or otherwise if it cannot be encoded.
func encode(root map[string]any, otherwise string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(root) != nil {
		return otherwise
	}
	return strings.TrimSpace(b.String())
}

func wrapScalars(object map[string]any) {
	for key, value := range object {
		switch value := value.(type) {
		case map[string]any:
			wrapScalars(value)
		case []any:
		default:
			object[key] = []any{value}
		}
	}
}
