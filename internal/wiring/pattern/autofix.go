package pattern

import (
	"bytes"
	"encoding/json"
	"strings"
)

// mendings bounds how many slips one pattern is mended of.
const mendings = 16

// Mend writes a pattern as it was probably meant: keys, sources, detail-types and values that are slips for what AWS
// sends are exchanged, and scalars that should be arrays are made arrays. It returns false where it cannot tell, or
// where what came out would be no better: the result compiles, and Lint finds less wrong with it.
func Mend(text string) (string, bool) {
	mended := text
	if _, err := Compile([]byte(text)); err != nil {
		mended = arrays(text)
	}
	before := errorsIn(text)
	for range mendings {
		next, ok := mendOne(mended)
		if !ok {
			break
		}
		mended = next
	}
	after := errorsIn(mended)
	return mended, mended != text && after >= 0 && (before < 0 || after < before)
}

// errorsIn counts the errors and warnings that Lint finds, or is -1 for a pattern that does not compile.
func errorsIn(text string) int {
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

// mendOne exchanges the first slip.
func mendOne(text string) (string, bool) {
	p, err := Compile([]byte(text))
	if err != nil {
		return "", false
	}
	for _, f := range Lint(p).Findings {
		if f.wrong == "" || !strings.Contains(text, f.wrong) {
			continue
		}
		return strings.ReplaceAll(text, f.wrong, f.right), true
	}
	return "", false
}

// arrays puts every scalar that stands where an array must into one.
func arrays(text string) string {
	var root map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return text
	}
	wrapScalars(root)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(root) != nil {
		return text
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
