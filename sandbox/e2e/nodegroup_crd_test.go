//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
)

// TestAPIServerValidatesNodeGroups uses only an API server with the CRD.
func TestAPIServerValidatesNodeGroups(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // the programs may need a build
	defer cancel()
	paths, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	crd := object(t, read(t, "crds/lifeboat.dev_nodegroups.yaml"))
	c := serveKinds(ctx, t, paths.Kubernetes, crd)
	(&rig{t: t}).until("the API server to serve node groups", time.Minute, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, nodeGroup(t, "{}"), client.DryRunAll)
		return err == nil, err
	})
	t.Run("invalid specs are rejected with a remedy", func(t *testing.T) { rejectsInvalidNodeGroups(t, c, crd) })
	t.Run("examples of the guide and the chart are accepted", func(t *testing.T) { acceptsNodeGroupExamples(t, c) })
	t.Run("defaults", func(t *testing.T) { checkNodeGroupDefaults(t, c) })
}

func nodeGroup(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("reading the test's spec: %v", err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lifeboat.dev/v1beta1", "kind": "NodeGroup", "metadata": map[string]any{"name": "g"}, "spec": fields,
	}}
}

// rejectsInvalidNodeGroups creates invalid specs, and checks that they cover every rule of the CRD.
func rejectsInvalidNodeGroups(t *testing.T, c client.Client, crd *unstructured.Unstructured) {
	all := func(more string) string {
		return "{management: All, launchTemplate: {name: a}, maxSize: 5, subnets: [subnet-1a], " + more + "}"
	}
	met := map[string]bool{}
	expect := func(spec string, err error, want [2]string) {
		said := causes(err)
		if !slices.Contains(said, want) {
			t.Errorf("%s\nwant %q\ngot  %q (%v)", spec, want, said, err)
		}
		for _, cause := range said {
			met[cause[0]+": "+cause[1]] = true
		}
	}
	const needs = "management All needs launchTemplate, maxSize and subnets, from which the group is created"
	for spec, want := range map[string][2]string{
		"{management: Some}": {"spec.management", "unknown management Some: write Observe, Hooks or All"},
		"{management: All}":  {"spec", needs},
		"{management: All, launchTemplate: {name: a}, maxSize: 1}": {"spec", needs},
		"{minSize: 3, maxSize: 2}":                                 {"spec", "minSize is larger than maxSize"},
		"{deletionPolicy: DeleteWhenEmpty}":                        {"spec", "deletionPolicy DeleteWhenEmpty deletes the group: write management: All as well, or Keep"},
		"{deletionPolicy: Delete}":                                 {"spec.deletionPolicy", "unknown deletionPolicy Delete: write Keep or DeleteWhenEmpty"},
		"{launchTemplate: {}}":                                     {"spec.launchTemplate", "a launch template is named by its id or by its name: write one of the two"},
		"{launchTemplate: {id: lt-1, name: a}}":                    {"spec.launchTemplate", "a launch template is named by its id or by its name: write one of the two"},
		"{mixedInstances: {instanceTypes: [m5.large]}}":            {"spec", "mixedInstances needs launchTemplate, from which its instances are launched"},
		all("warmPool: {state: Asleep}"):                           {"spec.warmPool.state", "unknown state Asleep: write Stopped, Running or Hibernated"},
		all("warmPool: {minSize: 3, maxPreparedCapacity: 2}"):      {"spec.warmPool", "minSize of the warm pool is larger than its maxPreparedCapacity, which counts the instances in service as well"},
		"{hooks: {launch: {onTimeout: RETRY}}}":                    {"spec.hooks.launch.onTimeout", "unknown onTimeout RETRY: write ABANDON or CONTINUE"},
		"{hooks: {terminate: {onTimeout: RETRY}}}":                 {"spec.hooks.terminate.onTimeout", "unknown onTimeout RETRY: write ABANDON or CONTINUE"},
		"{hooks: {launch: {name: 'a b'}}}":                         {"spec.hooks.launch.name", "name a b is no name of a lifecycle hook: letters, digits, -, _ and / only"},
		"{hooks: {terminate: {name: 'a.b'}}}":                      {"spec.hooks.terminate.name", "name a.b is no name of a lifecycle hook: letters, digits, -, _ and / only"},
		"{hooks: {launch: {name: a}, terminate: {name: a}}}":       {"spec.hooks", "the launch hook and the terminate hook have the same name: a group has one hook of a name"},
		"{hooks: {launch: {name: lifeboat-terminate}}}":            {"spec.hooks", "the launch hook and the terminate hook have the same name: a group has one hook of a name"},
		"{retainUndrained: true, hooks: {terminate: {onTimeout: CONTINUE}}}": {"spec",
			"retainUndrained keeps instances whose terminate hook was abandoned, and onTimeout CONTINUE never abandons: write ABANDON, or leave onTimeout out"},
	} {
		expect(spec, c.Create(t.Context(), nodeGroup(t, spec), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)), want)
	}
	long := nodeGroup(t, "{}")
	long.SetName(strings.Repeat("g", 64))
	expect("a name of 64 characters", c.Create(t.Context(), long, client.DryRunAll), [2]string{"",
		"a NodeGroup's name is the value of a label of its nodes, and has at most 63 characters: choose a shorter name, and write the group's name to spec.autoScalingGroup"})
	// Immutable fields.
	made := nodeGroup(t, "{autoScalingGroup: a}")
	made.SetName("made")
	if err := c.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"{autoScalingGroup: b}", "{management: Hooks}"} {
		changed := made.DeepCopy()
		changed.Object["spec"] = nodeGroup(t, spec).Object["spec"]
		expect(spec, c.Update(t.Context(), changed), [2]string{"spec", "autoScalingGroup cannot change: make another NodeGroup"})
	}
	for where, pattern := range rulesOf(crd) {
		if !slices.ContainsFunc(keys(met), regexp.MustCompile("^"+pattern+"$").MatchString) {
			t.Errorf("no spec in this test violates the rule of %s", where)
		}
	}
	for spec, want := range map[string]string{
		"{hooks: {launch: {timeoutSeconds: 29}}}":                          "should be greater than or equal to 30",
		"{hooks: {terminate: {timeoutSeconds: 7201}}}":                     "should be less than or equal to 7200",
		"{subnets: [sn-1]}":                                                "should match '^subnet-[0-9a-f]+$'",
		"{subnets: []}":                                                    "should have at least 1 items",
		"{launchTemplate: {name: a}, mixedInstances: {instanceTypes: []}}": "should have at least 1 items",
		"{manage: Observe}":                                                "unknown field \"spec.manage\"",
	} {
		err := c.Create(t.Context(), nodeGroup(t, spec), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// acceptsNodeGroupExamples creates every NodeGroup example.
func acceptsNodeGroupExamples(t *testing.T, c client.Client) {
	examples, err := filepath.Glob("../../charts/lifeboat/examples/nodegroup-*.yaml")
	if err != nil || len(examples) != 2 {
		t.Fatalf("%v, %v", examples, err)
	}
	var documents []string
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	guide, err := os.ReadFile("../../docs/guides/node-groups.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindAllStringSubmatch(string(guide), -1) {
		documents = append(documents, block[1])
	}
	if len(documents) < 4 {
		t.Fatalf("only %d examples", len(documents))
	}
	for _, document := range documents {
		if err := c.Create(t.Context(), object(t, []byte(document)), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%v:\n%s", err, document)
		}
	}
}

// checkNodeGroupDefaults checks that the defaults are the conservative values.
func checkNodeGroupDefaults(t *testing.T, c client.Client) {
	g := nodeGroup(t, "{launchTemplate: {name: a}, warmPool: {}}")
	if err := c.Create(t.Context(), g, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	spec := g.Object["spec"].(map[string]any)
	got := fmt.Sprint(spec["management"], spec["deletionPolicy"], spec["launchTemplate"].(map[string]any)["version"], spec["warmPool"].(map[string]any)["state"])
	if want := fmt.Sprint("Observe", "Keep", "$Default", "Stopped"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
