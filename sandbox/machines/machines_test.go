package machines

import (
	"context"
	"encoding/base64"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

var now = time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)

func instance(state ec2.InstanceState, powered bool) ec2.Instance {
	return ec2.Instance{
		ID: "i-0a1b2c3d4e5f60718", Type: "m5.large", Zone: "us-east-1a", PrivateIP: "10.0.0.10",
		PrivateDNSName: "ip-10-0-0-10.us-east-1.compute.internal", LaunchTime: now, State: state, Powered: powered,
	}
}

func node(managed bool, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-10.us-east-1.compute.internal", UID: "u", Labels: map[string]string{}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-0a1b2c3d4e5f60718"},
	}
	if managed {
		n.Labels[kwok.ManagedLabel] = kwok.ManagedValue
	}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	return n
}

func held(n *corev1.Node) *corev1.Node {
	n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: now}, []string{"karpenter.sh/termination"}
	return n
}

func tagged(in ec2.Instance, tag string) ec2.Instance {
	in.Tags = map[string]string{tag: ""}
	return in
}

// twoSeconds is a boot delay.
func twoSeconds(string) time.Duration { return 2 * time.Second }

func TestPlan(t *testing.T) {
	const yes, unknown = corev1.ConditionTrue, corev1.ConditionUnknown
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare-metal"}, Spec: corev1.NodeSpec{ProviderID: "metal://1"}}
	for _, tc := range []struct {
		name      string
		after     time.Duration // since the launch
		instances []ec2.Instance
		nodes     []*corev1.Node
		want      act // "": nothing
		wake      time.Duration
	}{
		{name: "a booting instance is not registered yet", after: time.Second, instances: []ec2.Instance{instance(ec2.Running, true)}, wake: 2 * time.Second},
		{name: "a booted instance registers", after: 2 * time.Second, instances: []ec2.Instance{instance(ec2.Running, true)}, want: start},
		{name: "a registered instance does not change", after: time.Hour, instances: []ec2.Instance{instance(ec2.Running, true)}, nodes: []*corev1.Node{node(true, yes)}},
		{name: "a pending instance has no power yet", after: time.Hour, instances: []ec2.Instance{instance(ec2.Pending, false)}},
		{name: "an instance without power stops its heartbeat", instances: []ec2.Instance{instance(ec2.ShuttingDown, false)}, nodes: []*corev1.Node{node(true, yes)}, want: cut},
		{name: "the Node of a terminated instance stays while Ready", instances: []ec2.Instance{instance(ec2.Terminated, false)}, nodes: []*corev1.Node{node(false, yes)}},
		{name: "the Node of a terminated instance is deleted when NotReady", instances: []ec2.Instance{instance(ec2.Terminated, false)}, nodes: []*corev1.Node{node(false, unknown)}, want: remove},
		{name: "the Node of a terminated instance stays without a cloud controller manager", instances: []ec2.Instance{tagged(instance(ec2.Terminated, false), TagKeepNode)}, nodes: []*corev1.Node{node(false, unknown)}},
		{name: "a deleted Node with a finalizer is not deleted again", instances: []ec2.Instance{instance(ec2.Terminated, false)}, nodes: []*corev1.Node{held(node(false, unknown))}},
		{name: "the Node stays while the instance shuts down", instances: []ec2.Instance{instance(ec2.ShuttingDown, false)}, nodes: []*corev1.Node{node(false, unknown)}},
		{name: "the Node stays while the instance is stopped", instances: []ec2.Instance{instance(ec2.Stopped, false)}, nodes: []*corev1.Node{node(false, unknown)}},
		{name: "a restarted instance gets its heartbeat back", after: time.Hour, instances: []ec2.Instance{instance(ec2.Running, true)}, nodes: []*corev1.Node{node(false, unknown)}, want: start},
		{name: "the Node of a deleted instance first loses its heartbeat", nodes: []*corev1.Node{node(true, yes)}, want: cut},
		{name: "the Node of a deleted instance is deleted", nodes: []*corev1.Node{node(false, unknown)}, want: remove},
		{name: "a Node without a condition stays", nodes: []*corev1.Node{node(false, "")}},
		{name: "other Nodes stay", nodes: []*corev1.Node{other}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps, wake := plan(view{Now: now.Add(tc.after), BootDelay: twoSeconds, Instances: tc.instances, Nodes: tc.nodes, Boot: NewSimulated(nil).Boot})
			var got act
			if len(steps) > 0 {
				got = steps[0].Act
			}
			if len(steps) > 1 || got != tc.want {
				t.Errorf("steps %v, want %q", steps, tc.want)
			}
			if tc.wake == 0 && !wake.IsZero() || tc.wake > 0 && !wake.Equal(now.Add(tc.wake)) {
				t.Errorf("wake %s, want %s after the launch", wake, tc.wake)
			}
		})
	}
}

func TestNodeMatchesEC2(t *testing.T) {
	in := instance(ec2.Running, true)
	in.UserData = base64.StdEncoding.EncodeToString([]byte(
		"#!/bin/bash\n/etc/eks/bootstrap.sh c --kubelet-extra-args '--node-labels=team=web,tier=x --register-with-taints=spot=true:NoSchedule'\n"))
	in.Tags = map[string]string{TagNodeLabels: "tier=y", TagNodeTaints: "a=b:NoExecute", "karpenter.sh/capacity-type": "spot"}
	n, err := Node(in, Where{Region: "us-east-1", ZoneID: "use1-az1"})
	if err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{
		"kubernetes.io/hostname": "ip-10-0-0-10.us-east-1.compute.internal", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-east-1a", "topology.kubernetes.io/region": "us-east-1",
		"topology.k8s.aws/zone-id": "use1-az1", "karpenter.sh/capacity-type": "spot", "team": "web", "tier": "y",
	}
	if diff := cmp.Diff(wantLabels, n.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantTaints := []corev1.Taint{{Key: "spot", Value: "true", Effect: "NoSchedule"}, {Key: "a", Value: "b", Effect: "NoExecute"}}
	if diff := cmp.Diff(wantTaints, n.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if n.Name != in.PrivateDNSName || n.Spec.ProviderID != "aws:///us-east-1a/"+in.ID || nodeindex.InstanceID(n) != in.ID {
		t.Errorf("name %s, provider id %s", n.Name, n.Spec.ProviderID)
	}
	// As an m5.large of EKS with Amazon Linux 2023 reports.
	if cpu, pods := n.Status.Allocatable.Cpu().String(), n.Status.Allocatable.Pods().String(); cpu != "1930m" || pods != "29" {
		t.Errorf("allocatable: %s cpu, %s pods", cpu, pods)
	}
}

func TestTagErrorsSayWhatToWrite(t *testing.T) {
	for tag, want := range map[string][2]string{
		TagNodeLabels: {"team", `instance i-0a1b2c3d4e5f60718: node label "team": write key=value`},
		TagNodeTaints: {"a=b:Never", `instance i-0a1b2c3d4e5f60718: node taint "a=b:Never": write key=value:NoSchedule, PreferNoSchedule or NoExecute`},
	} {
		in := instance(ec2.Running, true)
		in.Tags = map[string]string{tag: want[0]}
		if _, err := Node(in, Where{}); err == nil || err.Error() != want[1] {
			t.Errorf("Node() = %v, want %s", err, want[1])
		}
	}
}

// TestOperatorFollowsInstanceToTermination runs a real emulated EC2 and an operator against a fake API
// server. Another operator replaces the first one in the middle.
func TestOperatorFollowsInstanceToTermination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := ec2.New(ec2.Options{})
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go cloud.Run(ctx)
		stop := run(ctx, t, cloud, client)
		made, err := cloud.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		name := made[0].PrivateDNSName
		time.Sleep(time.Second)
		if got := get(ctx, client, name); got != nil {
			t.Fatal("the node registered before it booted")
		}
		time.Sleep(3 * time.Second)
		if got := get(ctx, client, name); got == nil || !managed(got) {
			t.Fatalf("after its boot the node is %v", got)
		}
		setReady(ctx, t, client, name, corev1.ConditionTrue)
		stop()

		// The instance terminates while no simulator runs; the next one detects that.
		if _, err := cloud.Terminate([]string{made[0].ID}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := get(ctx, client, name); got == nil || !managed(got) {
			t.Fatal("the node was changed")
		}
		stop = run(ctx, t, cloud, client)
		time.Sleep(time.Second)
		if got := get(ctx, client, name); got == nil || managed(got) {
			t.Fatalf("the node of a terminated instance is %v, want it without heartbeat", got)
		}
		setReady(ctx, t, client, name, corev1.ConditionUnknown)
		time.Sleep(time.Second)
		if got := get(ctx, client, name); got != nil {
			t.Error("a NotReady node of a terminated instance was not deleted")
		}
		stop()
		cancel()
		synctest.Wait()
	})
}

func run(ctx context.Context, t *testing.T, cloud Cloud, client *fake.Clientset) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- New(cloud, client, NewSimulated(client), Options{Region: "us-east-1", BootDelay: twoSeconds}).Run(ctx)
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running: %v", err)
		}
	}
}

func get(ctx context.Context, client *fake.Clientset, name string) *corev1.Node {
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return n
}

func setReady(ctx context.Context, t *testing.T, client *fake.Clientset, name string, status corev1.ConditionStatus) {
	t.Helper()
	n := get(ctx, client, name)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
