package chart_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the admission policies that `lifeboat doctor` expects")

// TestDoctorExpectsTheChartsPolicies compares the rendered admission policies with the file
// that is embedded in the CLI. The CLI cannot render the chart.
func TestDoctorExpectsTheChartsPolicies(t *testing.T) {
	const path = "../../internal/doctor/admission/policies.yaml"
	var docs []string
	for _, o := range render(t, with(t, "hooks: {namespaces: [hooks]}\nkarpenter: {guard: {enabled: true}}")).Objects {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		o.SetLabels(nil) // they contain the version
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	want := "# Written by `go test ./chart -run DoctorExpects -update` in sandbox/.\n" + strings.Join(docs, "---\n")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("`lifeboat doctor` expects other policies than the chart has; run with -update (-chart +doctor):\n%s", diff)
	}
}
