package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// TestAgentNamespaceMovesOnlyTheAgent compares the releases with and without the value.
func TestAgentNamespaceMovesOnlyTheAgent(t *testing.T) {
	const common = "{metrics: {serviceMonitor: {enabled: true}}, agent: {metrics: true, namespace: '%'}}"
	set := func(namespace string) chart.Manifests {
		return render(t, with(t, strings.Replace(common, "%", namespace, 1)))
	}
	without, moved := set(""), set("123") // a name that YAML reads as a number
	if diff := cmp.Diff(without.Objects, set(chart.Namespace).Objects); diff != "" {
		t.Errorf("the default is not the namespace of the release (-default +named):\n%s", diff)
	}
	var changed []string
	for i, o := range moved.Objects {
		before, after := text(t, without.Objects[i]), text(t, o)
		if before == after {
			continue
		}
		changed = append(changed, o.GetKind()+" "+o.GetName())
		want := strings.ReplaceAll(before, "namespace: "+chart.Namespace, `namespace: "123"`)
		if o.GetKind() == "ServiceMonitor" { // it selects both
			want = strings.Replace(before, "    - "+chart.Namespace+"\n", "    - "+chart.Namespace+"\n    - \"123\"\n", 1)
		}
		if diff := cmp.Diff(want, after); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
	slices.Sort(changed)
	if diff := cmp.Diff([]string{
		"ClusterRoleBinding lifeboat-agent", "DaemonSet lifeboat-agent", "FlowSchema lifeboat-agent",
		"Service lifeboat-agent", "ServiceAccount lifeboat-agent", "ServiceMonitor lifeboat",
	}, changed); diff != "" {
		t.Errorf("changed objects (-want +got):\n%s", diff)
	}
	if want := "kubectl -n 123 rollout status daemonset/lifeboat-agent"; !strings.Contains(moved.Notes, want) {
		t.Errorf("the notes lack %q:\n%s", want, moved.Notes)
	}
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	out, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
