package pattern

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/conformance"
)

// The emulator's matcher must pass the same cases.
func TestConformance(t *testing.T) {
	for _, c := range conformance.Patterns(t) {
		t.Run(c.Name, func(t *testing.T) {
			got := "valid"
			if p, err := Compile(c.Pattern); err != nil {
				got = conformance.Invalid
			} else if len(c.Event) > 0 {
				got = conformance.NoMatch
				if p.MatchEvent(mustDecode(t, string(c.Event))) {
					got = conformance.Match
				}
			}
			if got != c.Want {
				t.Errorf("%s: got %q, want %q\npattern %s\nevent   %s", c.From, got, c.Want, c.Pattern, c.Event)
			}
		})
	}
}
