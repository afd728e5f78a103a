package scenarios_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/scenarios"
)

func TestEveryScenarioIsWellFormed(t *testing.T) {
	names, err := scenarios.Names()
	if err != nil || len(names) == 0 {
		t.Fatalf("Names() = %v, %v", names, err)
	}
	for _, name := range names {
		text, err := scenarios.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Parse(name, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if sc.Prose == "" {
			t.Errorf("%s does not say what it shows", name)
		}
	}
}

func TestReadNamesWhatThereIs(t *testing.T) {
	_, err := scenarios.Read("maiden-voyage")
	want := `there is no scenario "maiden-voyage": there are first-voyage, held-pods, killed, misspelt-rule-alone, misspelt-rule, policy-ignore, rebalance`
	if err == nil || err.Error() != want {
		t.Errorf("Read() = %v, want %s", err, want)
	}
}
