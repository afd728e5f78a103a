//go:build e2e

package real

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// slowPair is a server that Karpenter launches a node for. It starts slowly, so a drain that does
// not wait for its successors leaves no pod.
func slowPair(name string) web {
	return web{Name: name, Replicas: 2, PreStop: hook, ReadyAfter: 15 * time.Second, Karpenter: true}
}

// karpenterReplacesFirst reclaims a real node that Karpenter launched. Karpenter must launch the
// next one before the first pod is asked to stop, and no request may fail.
func karpenterReplacesFirst(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	loads <- struct{}{}
	defer func() { <-loads }()
	w := slowPair("karpenter")
	s.policy(w.pool(), `[{kinds: [SpotInterruption], action: Drain, strategy: Surge, replacement: Before}]`)
	interrupted, old := s.launchedByKarpenter(w)
	seen := s.reclaimUnderLoad(w, interrupted, old, reclaimed{wholeHooks: true, replacedFirst: true})
	if seen.Failed != 0 {
		t.Errorf("requests failed: %s", seen)
	}
	record := s.completed(interrupted.ID)
	d := record.Status.Drain
	if d == nil || d.Replacement == nil || d.Replacement.ReadyTime == nil || d.PodCounts.Moved != int32(w.Replicas) || d.PodCounts.Lost != 0 {
		t.Fatalf("drain %+v, timeline %+v", d, record.Status.Timeline)
	}
	for _, l := range s.readJournals(old) {
		if l.HookBegin.Before(d.Replacement.ReadyTime.Time) {
			t.Errorf("%s was asked to stop at %s, and the replacement was Ready at %s", l.Pod, clock(l.HookBegin), clock(d.Replacement.ReadyTime.Time))
		}
	}
}

// karpenterAlone is its twin: Karpenter receives the warning from its own queue, and Lifeboat is off.
func karpenterAlone(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	loads <- struct{}{}
	defer func() { <-loads }()
	w := slowPair("karpenter-alone")
	interrupted, old := s.launchedByKarpenter(w)
	if err := karpenter.MakeRules(t.Context(), s.AWSConfig(), s.State().KarpenterQueueURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.disableKarpenterRules)
	requireFailures(t, s.reclaimUnderLoad(w, interrupted, old, reclaimed{}))
}

// launchedByKarpenter makes a NodePool for a server, and returns the instance that Karpenter
// launches for its pods.
func (s *stage) launchedByKarpenter(w web) (ec2.Instance, []string) {
	s.t.Helper()
	s.nodePool(w.pool())
	s.apply(w.objects()...)
	pods := s.untilReady(w, func(node string) bool { return node != "" })
	var on ec2.Instance
	for _, in := range s.EC2().Instances() {
		if in.PrivateDNSName == pods[0].Spec.NodeName {
			on = in
		}
	}
	if on.ID == "" || pods[0].Spec.NodeName != pods[1].Spec.NodeName {
		s.t.Fatalf("the pods are not on one instance: %s", states(pods))
	}
	s.until("Karpenter to initialise "+on.PrivateDNSName, time.Minute, func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		err := s.client.Get(ctx, types.NamespacedName{Name: on.PrivateDNSName}, node)
		return node.Labels["karpenter.sh/initialized"] == "true", fmt.Errorf("its labels are %v: %w", node.Labels, err)
	})
	s.checkRegistration(w, on)
	return on, names(pods)
}

// checkRegistration checks that a real kubelet registered the Node as the instance's user data says.
func (s *stage) checkRegistration(w web, in ec2.Instance) {
	s.t.Helper()
	node := &corev1.Node{}
	if err := s.client.Get(s.t.Context(), types.NamespacedName{Name: in.PrivateDNSName}, node); err != nil {
		s.t.Fatal(err)
	}
	for name, want := range map[string]string{
		poolLabel: w.pool(), "karpenter.sh/nodepool": w.pool(), "karpenter.sh/registered": "true",
		"karpenter.sh/capacity-type": "spot", corev1.LabelInstanceTypeStable: in.Type,
	} {
		if got := node.Labels[name]; got != want {
			s.t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(node.Status.NodeInfo.ContainerRuntimeVersion, "containerd://") || !strings.HasSuffix(node.Spec.ProviderID, "/"+in.ID) {
		s.t.Errorf("runtime %q, provider ID %q of instance %s", node.Status.NodeInfo.ContainerRuntimeVersion, node.Spec.ProviderID, in.ID)
	}
	size, _ := ec2.FindType(in.Type)
	if got := node.Status.Capacity.Cpu().Value(); got != int64(size.VCPU) {
		s.t.Errorf("the node has %d CPUs, its type %s has %d", got, in.Type, size.VCPU)
	}
	taints := map[string]string{}
	for _, taint := range node.Spec.Taints {
		taints[taint.Key] = taint.Value
	}
	if _, waits := taints["karpenter.sh/unregistered"]; waits || taints[poolLabel] != w.pool() {
		s.t.Errorf("taints %v, want that of the NodePool, and Karpenter's first one removed", node.Spec.Taints)
	}
}

// nodePool makes Karpenter launch spot instances of two CPUs for pods that tolerate the pool.
func (s *stage) nodePool(pool string) {
	s.t.Helper()
	class, nodes, err := karpenter.Defaults(0)
	if err != nil {
		s.t.Fatal(err)
	}
	class.SetName(pool)
	nodes.SetName(pool)
	requirements, _, err := unstructured.NestedSlice(nodes.Object, "spec", "template", "spec", "requirements")
	if err != nil {
		s.t.Fatal(err)
	}
	requirements = append(requirements, map[string]any{"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": []any{"2"}})
	for _, set := range []struct {
		value any
		path  []string
	}{
		{requirements, []string{"template", "spec", "requirements"}},
		{pool, []string{"template", "spec", "nodeClassRef", "name"}},
		{[]any{map[string]any{"key": poolLabel, "value": pool, "effect": "NoSchedule"}}, []string{"template", "spec", "taints"}},
		{map[string]any{poolLabel: pool}, []string{"template", "metadata", "labels"}},
		{"Never", []string{"disruption", "consolidateAfter"}},
	} {
		if err := unstructured.SetNestedField(nodes.Object, set.value, append([]string{"spec"}, set.path...)...); err != nil {
			s.t.Fatal(err)
		}
	}
	s.apply(class, nodes)
}

// completed waits until Lifeboat has handed an instance over and finished its record.
func (s *stage) completed(id string) *v1beta1.Interruption {
	s.t.Helper()
	var found *v1beta1.Interruption
	s.until("the record of "+id+" to be complete", time.Minute, func(ctx context.Context) (bool, error) {
		in, err := s.record(ctx, id)
		if in == nil || err != nil {
			return false, err
		}
		found = in
		return in.Status.Phase == v1beta1.PhaseCompleted, fmt.Errorf("phase %s, timeline %+v", in.Status.Phase, in.Status.Timeline)
	})
	return found
}

// disableKarpenterRules makes Karpenter receive no notices from EventBridge.
func (s *stage) disableKarpenterRules() {
	events := eventbridge.NewFromConfig(s.AWSConfig())
	rules, err := events.ListRules(context.Background(), &eventbridge.ListRulesInput{NamePrefix: aws.String("karpenter-")})
	if err != nil {
		s.t.Error(err)
		return
	}
	for _, rule := range rules.Rules {
		if _, err := events.DisableRule(context.Background(), &eventbridge.DisableRuleInput{Name: rule.Name}); err != nil {
			s.t.Error(err)
		}
	}
}
