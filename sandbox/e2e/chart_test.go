package e2e

import (
	"os/exec"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// TestLifeboatdAcceptsChartFlags lets lifeboatd parse the arguments of the chart's containers, with
// --help appended. It then only parses them, and still fails for an unknown flag or a bad value.
func TestLifeboatdAcceptsChartFlags(t *testing.T) {
	m, err := chart.Render(t.Context(), chart.Options{Values: map[string]any{
		"image": map[string]any{"repository": "lifeboatd"},
		"aws":   map[string]any{"queueURL": "https://sqs.eu-west-1.amazonaws.com/123456789012/q", "account": "123456789012", "region": "eu-west-1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]bool{}
	for _, o := range m.Objects {
		if o.GetKind() != "Deployment" && o.GetKind() != "DaemonSet" {
			continue
		}
		var d appsv1.Deployment // decodes the DaemonSet too: its pod template has the same path
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			t.Fatal(err)
		}
		args := d.Spec.Template.Spec.Containers[0].Args
		commands[args[0]] = true
		if out, err := exec.CommandContext(t.Context(), lifeboatd, append(args, "--help")...).CombinedOutput(); err != nil {
			t.Errorf("lifeboatd %q: %v: %s", args, err, out)
		}
		wrong := append(slices.Clone(args), "--not-a-flag", "--help")
		if out, err := exec.CommandContext(t.Context(), lifeboatd, wrong...).CombinedOutput(); err == nil {
			t.Errorf("lifeboatd %q must fail, or this test cannot find a bad flag: %s", wrong, out)
		}
	}
	if !commands["controller"] || !commands["agent"] {
		t.Errorf("the chart runs %v, want controller and agent", commands)
	}
}
