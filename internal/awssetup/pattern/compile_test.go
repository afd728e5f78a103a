package pattern

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorsReadAsAWSWritesThem(t *testing.T) {
	_, err := Compile([]byte(`{"source": ["aws.health"], "detail": {}}`))
	want := "Event pattern is not valid. Reason: Empty objects are not allowed\n" +
		` at [Source: (String)"{"source": ["aws.health"], "detail": {}}"; line: 1, column: 40]`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	_, err = Compile([]byte(`{"source":["test.event-pattern"],"detail":{"lenderId":"LenderA"}}`))
	if err == nil || !strings.HasSuffix(err.Error(), "; line: 1, column: 56]") {
		t.Errorf("got %v, want column 56", err)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	_, err := Compile([]byte("{\n  \"detail\": {\n    \"state\": \"x\"\n  }\n}"))
	var e *SyntaxError
	if !errors.As(err, &e) {
		t.Fatalf("got %T", err)
	}
	if e.Path != "detail.state" || e.Line != 3 || e.Column != 15 {
		t.Errorf("got path %q line %d column %d", e.Path, e.Line, e.Column)
	}
}

func TestLongPatternsAreQuotedInPart(t *testing.T) {
	_, err := Compile([]byte(`{"a":"` + strings.Repeat("é", 600) + `"}`))
	if err == nil || !strings.Contains(err.Error(), `é"[truncated 108 chars]; line: 1`) {
		t.Errorf("got %v", err)
	}
}

func TestInvalidJSON(t *testing.T) {
	for _, p := range []string{`{`, `{"a":[1]`, `{"a":[1],}`, `{"a":[1,]}`, `{"a" [1]}`, `{'a':[1]}`, `{"a":[1]} x`, `{"a":[1]}{}`,
		`{"a":[01]}`, `{"a":[NaN]}`, `{"a":["` + "\x01" + `"]}`, "{\"a\":[\"\xff\"]}", `// {}`, `{"a":[tru]}`} {
		if _, err := Compile([]byte(p)); err == nil || !strings.Contains(err.Error(), "Invalid JSON: ") {
			t.Errorf("pattern %q: got %v", p, err)
		}
	}
}

func TestLimits(t *testing.T) {
	pad := func(n int) []byte { return []byte(`{"a":["` + strings.Repeat("é", n-len(`{"a":[""]}`)) + `"]}`) }
	if _, err := Compile(pad(MaxLength)); err != nil {
		t.Errorf("a pattern of %d characters: %v", MaxLength, err)
	}
	_, err := Compile(pad(MaxLength + 1))
	wantSyntaxError(t, err, "Pattern is 2049 characters long, the limit is 2048")

	choices := func(n int) string {
		return `"$or":[` + strings.TrimSuffix(strings.Repeat(`{"k":[1]},`, n), ",") + `]`
	}
	product := func(a, b, c int) []byte {
		return fmt.Appendf(nil, `{"x":{%s},"y":{%s},"z":{%s}}`, choices(a), choices(b), choices(c))
	}
	if _, err := Compile(product(10, 10, 10)); err != nil {
		t.Errorf("1,000 combinations: %v", err)
	}
	_, err = Compile(product(10, 10, 11))
	wantSyntaxError(t, err, "Too many combinations in $or relationship, the limit is 1000")

	_, err = Compile([]byte(`{"a":[{"wildcard":"` + strings.Repeat("*a", maxWildcards+1) + `"}]}`))
	wantSyntaxError(t, err, tooComplex)
	_, err = Compile([]byte(strings.Repeat(`{"a":`, 300) + `[1]` + strings.Repeat(`}`, 300)))
	if err != nil {
		t.Errorf("deep pattern: %v", err)
	}
}

func TestPatternKeepsItsText(t *testing.T) {
	source := []byte(`{ "a" : [1] }`)
	p, err := Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	source[2] = 'x'
	if p.String() != `{ "a" : [1] }` {
		t.Errorf("got %s", p)
	}
}
