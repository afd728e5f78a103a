//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

// TestGuideCommandsCreateWarmPoolGroup runs the commands of docs/guides/rehearse.md that create an
// Auto Scaling group with a warm pool. The result must be one node in service, one warm instance,
// and every lifecycle hook completed.
func TestGuideCommandsCreateWarmPoolGroup(t *testing.T) {
	t.Parallel()
	need.Program(t, "aws")
	guide, err := os.ReadFile("../../docs/guides/rehearse.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := doccommands.Blocks(string(guide))
	i := slices.IndexFunc(blocks, func(b doccommands.Block) bool { return strings.Contains(b.Text, "create-auto-scaling-group") })
	if i < 0 {
		t.Fatal("the guide has no commands for a group")
	}
	// The sandbox belongs to this test alone.
	block := strings.Replace(blocks[i].Text, "eval \"$(lifeboat sandbox env)\"\n", "set -e\n", 1)
	block = untilCtrlC.ReplaceAllString(block, "")
	r := newRig(t)
	shell := exec.CommandContext(t.Context(), "sh", "-c", block)
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "AWS_PAGER=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
	for _, v := range r.State().Env() {
		shell.Env = append(shell.Env, v.Name+"="+v.Value)
	}
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	groups := r.AWS().States.AutoScaling
	r.until("one instance in service and one warm", 2*time.Minute, func(ctx context.Context) (bool, error) {
		var states []string
		for _, m := range groups.Members() {
			states = append(states, string(m.State))
		}
		slices.Sort(states)
		return slices.Equal(states, []string{string(autoscaling.InService), string(autoscaling.WarmedStopped)}), fmt.Errorf("they are %v", states)
	})
	r.until("one node, Ready and open", time.Minute, func(ctx context.Context) (bool, error) {
		var nodes corev1.NodeList
		if err := r.client.List(ctx, &nodes); err != nil || len(nodes.Items) != 1 {
			return false, fmt.Errorf("%d nodes: %w", len(nodes.Items), err)
		}
		node := &nodes.Items[0]
		shut := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1beta1.TaintNotInService })
		return nodeindex.Ready(node) && !shut, fmt.Errorf("its taints are %v", node.Spec.Taints)
	})
	for _, f := range groups.Firings() {
		if f.By != autoscaling.ByAnswer || f.Result != autoscaling.Continue {
			t.Errorf("hook %s of %s ended by %s with %s", f.Hook, f.InstanceID, f.By, f.Result)
		}
	}
}
