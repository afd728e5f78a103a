package pattern_test

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator/events/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/conformance"
)

func TestConformance(t *testing.T) {
	for _, c := range conformance.Patterns(t) {
		t.Run(c.Name, func(t *testing.T) {
			if got := judge(t, c); got != c.Want {
				t.Errorf("%s: got %q, want %q\npattern %s\nevent   %s", c.From, got, c.Want, c.Pattern, c.Event)
			}
		})
	}
}

func judge(t *testing.T, c conformance.Pattern) string {
	t.Helper()
	p, err := pattern.Compile(string(c.Pattern))
	if err != nil {
		return conformance.Invalid
	}
	if len(c.Event) == 0 {
		return "valid"
	}
	e, err := pattern.Decode(c.Event)
	if err != nil {
		t.Fatal(err)
	}
	if p.Matches(e) {
		return conformance.Match
	}
	return conformance.NoMatch
}

func TestCompileErrorsMatchAWS(t *testing.T) {
	for text, want := range map[string]string{
		`{"source":"aws.ec2"}`: `Reason: "source" must be an object or an array` + "\n at [Source: (String)",
		"{\n \"a\": []}":       "Reason: Empty arrays are not allowed",
		`[]`:                   "Reason: Filter is not an object",
		`{"a":[1]} x`:          "Reason: Invalid JSON",
		`{"a":[1}`:             "Reason: Invalid JSON",
		`{"a":["` + strings.Repeat("x", 2048) + `"]}`: "the limit is 2048",
	} {
		_, err := pattern.Compile(text)
		if err == nil || !strings.HasPrefix(err.Error(), "Event pattern is not valid. ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%q): %v, want %q", text, err, want)
		}
	}
	_, err := pattern.Compile("{\n \"a\": []}")
	if err == nil || !strings.HasSuffix(err.Error(), "line: 2, column: 9]") {
		t.Errorf("the position is wrong: %v", err)
	}
}

func TestOrAlternativesAreLimited(t *testing.T) {
	or := func(n int) string {
		return `{"$or":[` + strings.TrimSuffix(strings.Repeat(`{"k":[1]},`, n), ",") + `]}`
	}
	for third, valid := range map[int]bool{10: true, 11: false} {
		if _, err := pattern.Compile(`{"x":` + or(10) + `,"y":` + or(10) + `,"z":` + or(third) + `}`); (err == nil) != valid {
			t.Errorf("10 × 10 × %d combinations: %v", third, err)
		}
	}
}

func TestDecodeRejectsNonObjects(t *testing.T) {
	for _, text := range []string{``, `1`, `[]`, `null`, `{`} {
		if _, err := pattern.Decode([]byte(text)); err == nil {
			t.Errorf("Decode(%q) succeeded", text)
		}
	}
}
