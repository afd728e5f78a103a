package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

func nodeGroup(name, group string, ready bool, message string) *v1beta1.NodeGroup {
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	return &v1beta1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.NodeGroupSpec{AutoScalingGroup: group, Management: v1beta1.ManageNothing},
		Status: v1beta1.NodeGroupStatus{
			Group: group, Min: 1, Max: 10, Desired: 3, Deletion: "nothing at AWS: Auto Scaling group " + group + " and its nodes stay as they are",
			Instances:  v1beta1.InstanceCounts{InService: 3, Joining: 1, Warm: 2},
			Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: "R", Message: message}},
		},
	}
}

// groupWithProblems returns a group with many problems.
func groupWithProblems() *v1beta1.NodeGroup {
	at := func(ago time.Duration) *metav1.Time { t := metav1.NewTime(clock.Add(-ago)); return &t }
	g := nodeGroup("batch", "batch.prod.example.com", false, "the last 3 launches failed. What to do: look at the console output")
	g.Spec.WarmPool = &v1beta1.WarmPool{State: "Stopped", MinSize: 2, ReuseOnScaleIn: true}
	s := &g.Status
	s.PendingActions, s.ConsecutiveFailures = 3, 3
	s.Actions = []v1beta1.LifecycleAction{
		{InstanceID: instanceA, State: "Terminating:Wait", NodeName: nodeName, Hook: "lifeboat-terminate", Since: *at(2 * time.Minute), Expires: at(-3 * time.Minute), Message: "its node is being drained"},
		{InstanceID: instanceB, State: "Pending:Wait", Since: *at(20 * time.Second), Message: "waits for hook somebodys, which is not Lifeboat's to answer"},
	}
	s.Boots = &v1beta1.BootTimes{Count: 12, LastSeconds: 80, LongestSeconds: 130}
	s.Failures = []v1beta1.GroupFailure{{Time: *at(time.Minute), InstanceID: "i-9", Message: "abandoned: its node was not Ready after 30 min"}}
	s.Suspended = []string{"AZRebalance"}
	s.Findings = []v1beta1.GroupFinding{
		{Severity: "broken", ID: "launches-fail", Message: "the last 3 launches failed", Fix: "look at the console output"},
		{Severity: "unknown", ID: "hooks-unknown", Message: "the group's lifecycle hooks could not be read", Fix: "allow autoscaling:DescribeLifecycleHooks: `lifeboat aws iam` prints the policy"},
		{Severity: "info", ID: "process-suspended", Message: "the process AZRebalance is suspended"},
	}
	s.Conditions = append(s.Conditions, metav1.Condition{Type: v1beta1.ConditionSynced, Status: metav1.ConditionTrue, Message: "management is Observe: Lifeboat does not change the group"})
	return g
}

func TestNodeGroupList(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, groupWithProblems(), nodeGroup("workers", "workers", true, "fine"),
		&v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Spec: v1beta1.NodeGroupSpec{Management: v1beta1.ManageAll}})}
	r := h.run(t.Context(), "ng", "list")
	golden(t, "nodegroup-list.golden", r.out+r.err)
	if r.code != ExitOK {
		t.Errorf("exit code %d", r.code)
	}
	var list v1beta1.NodeGroupList
	r = h.run(t.Context(), "nodegroup", "list", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list.Items) != 3 || list.Kind != "NodeGroupList" || list.Items[0].Name != "batch" {
		t.Errorf("%v: %s%s", err, r.out, r.err)
	}
	r = h.run(t.Context(), "nodegroup", "list", "-o", "yaml")
	if err := yaml.Unmarshal([]byte(r.out), &list); err != nil || len(list.Items) != 3 {
		t.Errorf("%v: %s%s", err, r.out, r.err)
	}
	if r = h.run(t.Context(), "nodegroup", "list", "-o", "name"); r.out != "nodegroup.lifeboat.dev/batch\nnodegroup.lifeboat.dev/fresh\nnodegroup.lifeboat.dev/workers\n" {
		t.Errorf("%s%s", r.out, r.err)
	}
	r = (&harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{})}).run(t.Context(), "nodegroup", "list")
	if r.code != ExitOK || r.out != "" || !strings.Contains(r.err, "`lifeboat nodegroup adopt AUTO-SCALING-GROUP`") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestNodeGroupDescribe(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, groupWithProblems(), nodeGroup("workers", "workers", true, "fine"))}
	golden(t, "nodegroup-describe.golden", h.run(t.Context(), "nodegroup", "describe", "batch").out)
	golden(t, "nodegroup-describe-well.golden", h.run(t.Context(), "nodegroup", "describe", "workers").out)
	// The name of the Auto Scaling group works too.
	r := h.run(t.Context(), "nodegroup", "describe", "batch.prod.example.com", "-o", "yaml")
	var g v1beta1.NodeGroup
	if err := yaml.Unmarshal([]byte(r.out), &g); err != nil || g.Name != "batch" || g.Kind != "NodeGroup" || r.code != ExitOK {
		t.Errorf("exit code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	for name, tc := range map[string]struct {
		h    *harness
		args []string
		code int
		want string
	}{
		"one that is not there": {h, []string{"describe", "web"}, ExitFailed, "node group web not found; the existing ones are: batch, workers"},
		"where there are none":  {&harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{})}, []string{"describe", "web"}, ExitFailed, "run `lifeboat nodegroup adopt web` to adopt"},
		"no name":               {h, []string{"describe"}, ExitUsage, "takes one node group, got 0"},
		"a wrong word":          {h, []string{"descrbe"}, ExitUsage, "did you mean describe?"},
	} {
		if r := tc.h.run(t.Context(), append([]string{"nodegroup"}, tc.args...)...); r.code != tc.code || !strings.Contains(r.err, tc.want) {
			t.Errorf("%s: exit code %d: %s", name, r.code, r.err)
		}
	}
	if r := h.run(t.Context(), "plan", "x", "-o", "yaml"); r.code != ExitUsage || !strings.Contains(r.err, `does not support the output format "yaml": use -o text or -o json`) {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// kopsGroup returns a group that kOps created.
func kopsGroup() nodegroup.Observed {
	return nodegroup.Observed{
		Exists: true, Name: "nodes.prod.example.com", Min: 1, Max: 5, Desired: 2, HooksKnown: true, PoolKnown: true,
		Tags:     map[string]string{"kops.k8s.io/instancegroup": "nodes"},
		Hooks:    []nodegroup.Hook{{Name: "kops-warmpool", Timeout: 10 * time.Minute, Abandons: true}},
		Settings: &nodegroup.Settings{Template: &v1beta1.LaunchTemplate{ID: "lt-1", Version: "3"}, Subnets: []string{"subnet-1a"}},
	}
}

func TestNodeGroupAdopt(t *testing.T) {
	newHarness := func(o nodegroup.Observed, err error, objects ...client.Object) *harness {
		return &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, objects...), setup: func(s *session) {
			s.observeGroup = func(_ context.Context, name string) (nodegroup.Observed, error) { return o, err }
		}}
	}
	const name = "nodes.prod.example.com"
	h := newHarness(kopsGroup(), nil)
	r := h.run(t.Context(), "nodegroup", "adopt", name)
	golden(t, "nodegroup-adopt.golden", r.err+r.out)
	var g v1beta1.NodeGroup
	if err := h.cluster.Get(t.Context(), client.ObjectKey{Name: "nodes"}, &g); err != nil || g.Spec.AutoScalingGroup != name || g.Spec.Hooks.Launch.Name != "kops-warmpool" ||
		g.Spec.Management != v1beta1.ManageNothing {
		t.Errorf("%v: %+v", err, g.Spec)
	}
	if r := h.run(t.Context(), "nodegroup", "adopt", name); r.code != ExitFailed || !strings.Contains(r.err, "adopting Auto Scaling group "+name+": it already has NodeGroup nodes") {
		t.Errorf("the second time: exit code %d: %s", r.code, r.err)
	}

	h = newHarness(kopsGroup(), nil)
	r = h.run(t.Context(), "nodegroup", "adopt", name, "--management", "All", "--dry-run", "-o", "yaml")
	golden(t, "nodegroup-adopt-all.golden", r.out)
	var list v1beta1.NodeGroupList
	if err := h.cluster.List(t.Context(), &list); err != nil || len(list.Items) != 0 {
		t.Errorf("a dry run made %d objects, %v", len(list.Items), err)
	}

	unread := errors.New("no credentials")
	h = newHarness(nodegroup.Observed{}, unread)
	if r := h.run(t.Context(), "nodegroup", "adopt", name, "--name", "mine"); r.code != ExitOK || !strings.Contains(r.err, "The group could not be read: no credentials") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	for what, tc := range map[string]struct {
		h    *harness
		args []string
		code int
		want string
	}{
		"unread, to be managed": {h, []string{name, "--management", "All"}, ExitFailed, "no credentials"},
		"or its hooks only":     {h, []string{name, "--management", "Hooks"}, ExitFailed, "no credentials"},
		"one that is not there": {newHarness(nodegroup.Observed{}, errNoGroup), []string{name}, ExitFailed, "no such Auto Scaling group"},
		"a wrong management":    {h, []string{name, "--management", "Some"}, ExitUsage, "write Observe, Hooks or All"},
		"a name that is taken":  {newHarness(kopsGroup(), nil, nodeGroup("nodes", "others", true, "")), []string{name}, ExitFailed, "choose another name with --name"},
	} {
		if r := tc.h.run(t.Context(), append([]string{"nodegroup", "adopt"}, tc.args...)...); r.code != tc.code || !strings.Contains(r.err, tc.want) {
			t.Errorf("%s: exit code %d: %s", what, r.code, r.err)
		}
	}
}

// The flags and the environment select the AWS account that is read.
func TestNodeGroupAdoptReadsAWS(t *testing.T) {
	server, url := emulatortest.Serve(t, emulator.Options{})
	if err := server.States.AutoScaling.CreateGroup(autoscaling.Group{
		Name: "batch", Max: 3, Tags: map[string]string{"eks:nodegroup-name": "blue"},
		Hooks: []autoscaling.Hook{{Name: "mine", Transition: autoscaling.Launching}},
	}); err != nil {
		t.Fatal(err)
	}
	h := atEndpoint(t, url)
	r := h.run(t.Context(), "nodegroup", "adopt", "batch", "--dry-run", "--sandbox=default")
	if r.code != ExitOK || !strings.Contains(r.out, "name: blue\n") || !strings.Contains(r.out, "autoScalingGroup: batch\n") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	r = h.run(t.Context(), "nodegroup", "adopt", "bacth", "--sandbox=default")
	if r.code != ExitFailed || !strings.Contains(r.err, "no such Auto Scaling group: bacth, in region us-east-1; check the name") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}
