package drain_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// planOut is a golden file: the plan in readable form.
type planOut struct {
	WakeAt   string       `json:"wakeAt,omitempty"`
	Verdicts []verdictOut `json:"verdicts"`
}

type verdictOut struct {
	Pod          string `json:"pod"`
	Step         string `json:"step"`
	Reason       string `json:"reason"`
	LastCall     string `json:"lastCall,omitempty"`
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
	Overrides    string `json:"overrides,omitempty"`
}

func TestPlanMatchesGoldenFiles(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(inputs) < 55 {
		t.Fatalf("found %d inputs in testdata, want at least 55", len(inputs))
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".input.yaml")
		t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) {
			var in scenario
			read(t, input, &in)
			facts := in.facts()
			got := written(drain.NewPlan(facts))

			slices.Reverse(facts.Pods)
			slices.Reverse(facts.Budgets)
			if diff := cmp.Diff(got, written(drain.NewPlan(facts))); diff != "" {
				t.Errorf("the plan depends on the order of the input (-forwards +backwards):\n%s", diff)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				write(t, golden, got)
			}
			var want planOut
			read(t, golden, &want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("plan differs from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func written(p drain.Plan) planOut {
	out := planOut{WakeAt: hour(p.WakeAt)}
	for _, v := range p.Verdicts {
		out.Verdicts = append(out.Verdicts, verdictOut{
			Pod: v.Pod.Namespace + "/" + v.Pod.Name, Step: string(v.Step), Reason: v.Reason,
			LastCall: hour(v.LastCall), GraceSeconds: v.GraceSeconds, Overrides: v.Overrides,
		})
	}
	return out
}

func hour(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("15:04:05.999")
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
