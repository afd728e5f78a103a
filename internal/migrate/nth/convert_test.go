package nth_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/migrate"
	"github.com/lifeboat-dev/lifeboat/internal/migrate/nth"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; go test -update rewrites it (-want +got):\n%s", path, diff)
	}
}

// valid checks that Lifeboat accepts the policy.
func valid(t *testing.T, output []byte) v1beta1.InterruptionPolicySpec {
	t.Helper()
	var p v1beta1.InterruptionPolicy
	if err := yaml.UnmarshalStrict(output, &p); err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	if problems := policy.Validate(p.Spec); len(problems) > 0 || p.Name == "" {
		t.Errorf("policy %q: %q\n%s", p.Name, problems, output)
	}
	return p.Spec
}

func TestGolden(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) < 4 {
		t.Fatalf("%d inputs: %v", len(inputs), err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			r, err := nth.Convert([]migrate.File{{Name: filepath.Base(input), Data: data}})
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(input, ".in.yaml")
			golden(t, name+".out.yaml", string(r.Output))
			var found strings.Builder
			for _, f := range r.Findings {
				fmt.Fprintf(&found, "%d %s %s: %s\n  %s\n", f.Line, f.Severity, f.ID, f.Object, f.Problem)
				if f.Fix != "" {
					fmt.Fprintf(&found, "  -> %s\n", f.Fix)
				}
			}
			golden(t, name+".findings.txt", found.String())
			if len(r.Output) > 0 {
				valid(t, r.Output)
			}
		})
	}
}

// For every value of a flag the policy is valid, and there is a finding or a rule for
// each flag that has an effect.
func TestEveryFlagIsKnown(t *testing.T) {
	t.Parallel()
	flags, err := os.ReadFile("../../cli/testdata/nth-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(flags)) {
		for _, value := range []string{"true", "false", "-1", "0", "90", "100000000", "x"} {
			manifest := fmt.Sprintf(`{"kind":"DaemonSet","spec":{"template":{"spec":{"containers":[{"args":["--%s",%q]}]}}}}`, name, value)
			r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(manifest)}})
			if err != nil {
				t.Errorf("%s is not known: %v", name, err)
				break
			}
			if len(r.Output) > 0 && name != "webhook-url" { // x is no URL
				valid(t, r.Output)
			}
		}
	}
}

func TestDryRunAndCordonOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]v1beta1.Action{"dryRun: true": v1beta1.ActionIgnore, "cordonOnly: true": v1beta1.ActionCordon, "dryRun: true\ncordonOnly: true": v1beta1.ActionIgnore} {
		r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		if spec := valid(t, r.Output); len(spec.Rules) != 1 || spec.Rules[0].Action != want {
			t.Errorf("%s: %+v", text, spec.Rules)
		}
	}
}

// With cordon-only, disabled kinds stay disabled and no kind is drained.
func TestCordonOnlyKeepsDisabledKinds(t *testing.T) {
	t.Parallel()
	const (
		on       = "cordonOnly: true\n"
		queue    = on + "enableSqsTerminationDraining: true\n"
		spotOff  = "enableSpotInterruptionDraining: false\n"
		schedOff = "enableScheduledEventDraining: false\n"
		asgOff   = "enableASGLifecycleDraining: false\n"
		monitor  = "enableRebalanceMonitoring: true\n"
		drain    = "enableRebalanceDraining: true\n"
	)
	spot, scheduled, rebalance := notice.KindSpotInterruption, notice.KindScheduledChange, notice.KindRebalanceRecommendation
	state, termination := notice.KindInstanceStateChange, notice.KindAutoScalingTermination
	for name, c := range map[string]struct {
		text              string
		ignored, cordoned []string
	}{
		"metadata, nothing off":         {on, nil, []string{spot, scheduled, state, termination}},
		"metadata, spot off":            {on + spotOff, []string{spot}, []string{scheduled, state, termination}},
		"metadata, two off":             {on + spotOff + schedOff, []string{spot, scheduled}, []string{state, termination}},
		"metadata, terminations off":    {on + asgOff, []string{termination}, []string{spot, scheduled, state}},
		"metadata, rebalance monitored": {on + monitor, nil, []string{spot, scheduled, rebalance, state, termination}},
		"metadata, rebalance drained":   {on + drain, nil, []string{spot, scheduled, rebalance, state, termination}},
		"metadata, all off":             {on + spotOff + schedOff + asgOff, []string{spot, scheduled, termination}, []string{state}},
		"queue, where no switch counts": {queue + spotOff + schedOff + asgOff, nil, []string{spot, scheduled, rebalance, state, termination}},
	} {
		r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(c.text)}})
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[v1beta1.Action][]string{}
		for _, rule := range valid(t, r.Output).Rules {
			kinds[rule.Action] = append(kinds[rule.Action], rule.Kinds...)
		}
		want := map[v1beta1.Action][]string{v1beta1.ActionCordon: c.cordoned}
		if c.ignored != nil {
			want[v1beta1.ActionIgnore] = c.ignored
		}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		waits := slices.ContainsFunc(r.Findings, func(f migrate.Finding) bool { return f.ID == "terminations" && f.Severity == finding.Warning })
		if want := slices.Contains(c.cordoned, termination); waits != want {
			t.Errorf("%s: said that hooks wait: %t, want %t", name, waits, want)
		}
		if slices.Contains(c.ignored, termination) && slices.ContainsFunc(r.Findings, func(f migrate.Finding) bool { return strings.Contains(f.Problem, "always so") }) {
			t.Errorf("%s: terminations are ignored, and said to be always drained: %+v", name, r.Findings)
		}
	}
}

// A choice that Lifeboat cannot keep is a finding that needs manual work.
func TestChoicesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"deleteLocalData: false", "ignoreDaemonSets: false"} {
		r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(r.Findings, func(f migrate.Finding) bool { return f.Severity == finding.Broken && f.Fix != "" }) ||
			slices.ContainsFunc(r.Findings, func(f migrate.Finding) bool { return strings.Contains(f.Problem, "always works like this") }) {
			t.Errorf("%s: %+v", text, r.Findings)
		}
	}
	for text, want := range map[string]bool{
		"enableASGLifecycleDraining: false": true, "enableASGLifecycleDraining: true": false,
		"enableASGLifecycleDraining: false\nenableSqsTerminationDraining: true": false, // queue mode ignores the flag
	} {
		r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		ignores := false
		if len(r.Output) > 0 {
			ignores = slices.ContainsFunc(valid(t, r.Output).Rules, func(rule v1beta1.Rule) bool {
				return rule.Action == v1beta1.ActionIgnore && slices.Contains(rule.Kinds, notice.KindAutoScalingTermination)
			})
		}
		if ignores != want {
			t.Errorf("%s: terminations are ignored: %t, want %t", text, ignores, want)
		}
	}
}

func TestNodeSelectorsBecomeThoseOfThePolicy(t *testing.T) {
	t.Parallel()
	const daemonSet = `{"kind":"DaemonSet","spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux","lifecycle":"spot"},"containers":[{"args":["--cordon-only"]}]}}}}`
	spot := map[string]string{"lifecycle": "spot"}
	for text, want := range map[string]map[string]string{
		"cordonOnly: true\nlinuxNodeSelector: {lifecycle: spot}":     spot,
		"cordonOnly: true\ndaemonsetNodeSelector: {lifecycle: spot}": spot,
		"cordonOnly: true\nnodeSelector: {lifecycle: spot}":          spot,
		daemonSet:                            spot,
		"cordonOnly: true\nnodeSelector: {}": nil,
		"cordonOnly: true\nlinuxNodeSelector: {kubernetes.io/os: linux}":                                 nil,
		"cordonOnly: true\nenableSqsTerminationDraining: true\nnodeSelector: {node-role: control-plane}": nil,
	} {
		r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, valid(t, r.Output).Nodes.MatchLabels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if found := slices.ContainsFunc(r.Findings, func(f migrate.Finding) bool { return f.ID == "nodes" }); found != (want != nil) {
			t.Errorf("%s: said so: %t", text, found)
		}
	}
	r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte("cordonOnly: true\nlinuxNodeSelector: {a: b}\nwindowsNodeSelector: {c: d}")}})
	if err != nil || !slices.ContainsFunc(r.Findings, func(f migrate.Finding) bool { return f.ID == "nodes" && f.Severity == finding.Broken }) {
		t.Errorf("two selectors: %v, %+v", err, r.Findings)
	}
}

func TestFilesWithoutSettingsAreErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"replicaCount: 2": "it contains no setting of AWS Node Termination Handler", "": "it contains no setting", "a: [": "it is not valid YAML", "- a\n- b": "it contains no setting",
	} {
		if _, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(text)}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzConvert checks that no input makes Convert panic, and that its output is a
// policy.
func FuzzConvert(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := nth.Convert([]migrate.File{{Name: "a.yaml", Data: []byte(text)}})
		if err != nil || len(r.Output) == 0 {
			return
		}
		var p v1beta1.InterruptionPolicy
		if err := yaml.UnmarshalStrict(r.Output, &p); err != nil || len(p.Spec.Rules) == 0 {
			t.Errorf("%v:\n%s", err, r.Output)
		}
	})
}
