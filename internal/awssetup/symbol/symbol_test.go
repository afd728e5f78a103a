package symbol_test

import (
	"slices"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

const (
	rule    = "arn:aws:events:{region}:{account}:rule/"
	spot    = rule + "{?AWS.StackName}-Spot-{~Spot}"
	written = "arn:aws:events:us-east-1:123456789012:rule/"
)

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want symbol.Truth
	}{
		{"a", "a", symbol.Yes},
		{"a", "b", symbol.No},
		{spot, spot, symbol.Yes},
		{"{account}", "123456789012", symbol.Maybe},
		{"{account}", "12345678901x", symbol.No},
		{"{region}", "us-east-1", symbol.Maybe},
		{"{region}", "US", symbol.No},
		{"{?Name}", "{?Name}", symbol.Yes},
		{"{?Name}", "{?Other}", symbol.Maybe},
		{"{?Name}", "", symbol.Maybe},
		{spot, rule + "Spot", symbol.No},
		{spot, rule + "{?AWS.StackName}-Rebalance-{~Rebalance}", symbol.No},
		{spot, rule + "{?AWS.StackName}-Spot-{~Other}", symbol.Maybe},
		{spot, written + "web-Spot-ZALM4D8HB93P", symbol.Maybe},
		{rule + "spot", written + "spot", symbol.Maybe},
		{rule + "spot", written + "spots", symbol.No},
		{"a-{~X}", "a-b-c", symbol.No},
	} {
		if got := symbol.Equal(tc.a, tc.b); got != tc.want {
			t.Errorf("Equal(%s, %s) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := symbol.Equal(tc.b, tc.a); got != tc.want {
			t.Errorf("Equal(%s, %s) = %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          symbol.Truth
	}{
		{"a*c", "abbc", symbol.Yes},
		{"a?c", "abbc", symbol.No},
		{"*", "{?X}", symbol.Yes},
		{"?", "{?X}", symbol.Maybe},
		{"a*", "a{?X}", symbol.Yes},
		{"a*", "{?X}a", symbol.Maybe},
		{"{?X}*", "{?X}a", symbol.Yes},
		{"{?X}*", "a", symbol.Maybe},
		{"b{?X}*", "a", symbol.No},
		{"a**", "a", symbol.Yes},
		{"a{account}", "a12?", symbol.No},
	} {
		if got := symbol.Glob(tc.pattern, tc.text); got != tc.want {
			t.Errorf("Glob(%s, %s) = %d, want %d", tc.pattern, tc.text, got, tc.want)
		}
	}
}

func TestARNLike(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          symbol.Truth
	}{
		{rule + "{?AWS.StackName}-Spot-*", spot, symbol.Yes},
		{"arn:aws:events:*:{account}:rule/*", spot, symbol.Yes},
		{"arn:*:rule/*", spot, symbol.No},
		{written + "*", spot, symbol.Maybe},
		{"{?RuleArn}", spot, symbol.Maybe},
		{rule + "Spot", spot, symbol.No},
	} {
		if got := symbol.ARNLike(tc.pattern, tc.text); got != tc.want {
			t.Errorf("ARNLike(%s, %s) = %d, want %d", tc.pattern, tc.text, got, tc.want)
		}
	}
}

func TestUndefined(t *testing.T) {
	got := symbol.Undefined("{?a}{account}{?b} {?a} ${c} {~d} " + symbol.Open("x:{y}"))
	if want := []string{"a", "b", "x.y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if symbol.Within(`{"a":1} ${aws:username}`) || !symbol.Within("x{~y}") {
		t.Error("Within")
	}
}

// FuzzCompare checks that the three comparisons agree, and that they are certain
// without symbols.
func FuzzCompare(f *testing.F) {
	f.Add("a{?x}*", "ab{~y}")
	f.Fuzz(func(t *testing.T, a, b string) {
		equal, glob := symbol.Equal(a, b), symbol.Glob(a, b)
		if !symbol.Within(a) && !symbol.Within(b) && (equal == symbol.Maybe || glob == symbol.Maybe) {
			t.Errorf("uncertain about %q and %q", a, b)
		}
		if equal == symbol.Yes && a != b {
			t.Errorf("%q and %q are equal", a, b)
		}
	})
}
