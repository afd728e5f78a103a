//go:build e2e

package chart_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

func newNotice(id, source string) v1beta1.Notice {
	now := time.Now().Truncate(time.Second)
	return v1beta1.Notice{
		ID: id, Kind: "SpotInterruption", Source: source,
		Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now),
	}
}

func record(id, node string, notices ...v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec:       v1beta1.InterruptionSpec{InstanceID: id, NodeName: node, NodeUID: types.UID("uid-" + node), Notices: notices},
	}
}

// nodeNotice is what the agent of a node writes.
func nodeNotice(node *corev1.Node, edit func(*v1beta1.NodeNotice)) *v1beta1.NodeNotice {
	at := metav1.NewTime(time.Now().Add(2 * time.Minute).Truncate(time.Second))
	n := &v1beta1.NodeNotice{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name},
		Spec: v1beta1.NodeNoticeSpec{InstanceID: "i-0a1b2c3d4e5f60718", NodeUID: string(node.UID), Notices: []v1beta1.MetadataNotice{{
			ID: "imds/SpotInterruption/1", Kind: "SpotInterruption", Subject: "spot/instance-action", Deadline: &at,
		}}},
	}
	if edit != nil {
		edit(n)
	}
	return n
}

// stage has two nodes and their agents.
type stage struct {
	admin        client.Client
	nodeA, nodeB *corev1.Node
	agentA       client.Client
	unbound      client.Client // the agent's account with a token that names no node
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{admin: admin(t), nodeA: newNode(t, "node-a"), nodeB: newNode(t, "node-b")}
	s.agentA = clientOf(t, agentOn(t, s.nodeA))
	s.unbound = clientOf(t, as(t, chart.AgentAccount, nil))
	until(t, "the policy to be in force", func() (bool, error) {
		err := s.unbound.Create(t.Context(), nodeNotice(s.nodeA, nil), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), err
	})
	return s
}

// check compares the result: want is a part of the refusal's message, or "" for
// success.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want a refusal: %s", want)
	case want != "" && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v\nwant a refusal that says: %s", err, want)
	}
}

// word is a value with its author.
func word(by string) *v1beta1.UserAction {
	return &v1beta1.UserAction{By: by, Time: metav1.NewMicroTime(time.Now()), About: "SpotInterruption"}
}

// agentEdits are what an agent tries to write, and a part of the refusal; "" if it may.
func agentEdits(s *stage) map[string]struct {
	edit func(*v1beta1.NodeNotice)
	want string
} {
	first := func(edit func(*v1beta1.MetadataNotice)) func(*v1beta1.NodeNotice) {
		return func(n *v1beta1.NodeNotice) { edit(&n.Spec.Notices[0]) }
	}
	return map[string]struct {
		edit func(*v1beta1.NodeNotice)
		want string
	}{
		"what it reads":          {nil, ""},
		"no notices":             {func(n *v1beta1.NodeNotice) { n.Spec.Notices = nil }, ""},
		"eight notices":          {func(n *v1beta1.NodeNotice) { n.Spec.Notices = many(8) }, ""},
		"a withdrawal":           {first(func(n *v1beta1.MetadataNotice) { n.Withdrawn = true }), ""},
		"a spot notice, no time": {first(func(n *v1beta1.MetadataNotice) { n.Deadline = nil }), ""},
		"nine notices":           {func(n *v1beta1.NodeNotice) { n.Spec.Notices = many(9) }, "must have at most 8 items"},
		"another instance's id":  {func(n *v1beta1.NodeNotice) { n.Spec.InstanceID = "database" }, "spec.instanceID"},
		"another node's UID":     {func(n *v1beta1.NodeNotice) { n.Spec.NodeUID = string(s.nodeB.UID) }, "spec.nodeUID must be the UID of the node to which the token is bound"},
		"a failed status check":  {first(func(n *v1beta1.MetadataNotice) { n.Kind = "InstanceStatus" }), `Unsupported value: "InstanceStatus"`},
		"a state change":         {first(func(n *v1beta1.MetadataNotice) { n.Kind = "InstanceStateChange" }), `Unsupported value: "InstanceStateChange"`},
		"a return to a pool":     {first(func(n *v1beta1.MetadataNotice) { n.InstanceAction = "return" }), `Unsupported value: "return"`},
		"another source's id":    {first(func(n *v1beta1.MetadataNotice) { n.ID = "ec2/SpotInterruption/1" }), "spec.notices[0].id"},
		"a terminal escape":      {first(func(n *v1beta1.MetadataNotice) { n.ID = "imds/\x1b[2J" }), "spec.notices[0].id"},
		"a long id":              {first(func(n *v1beta1.MetadataNotice) { n.ID = "imds/" + strings.Repeat("x", 124) }), "Too long"},
		"a long subject":         {first(func(n *v1beta1.MetadataNotice) { n.Subject = strings.Repeat("x", 129) }), "Too long"},
		"a long code":            {first(func(n *v1beta1.MetadataNotice) { n.EventTypeCode = strings.Repeat("x", 129) }), "Too long"},
		"a long description":     {first(func(n *v1beta1.MetadataNotice) { n.Description = strings.Repeat("x", 513) }), "Too long"},
		"an event without time": {first(func(n *v1beta1.MetadataNotice) { n.Kind, n.Deadline = "ScheduledChange", nil }),
			"a ScheduledChange needs a deadline"},
		"a deadline of no kind": {first(func(n *v1beta1.MetadataNotice) { n.Kind = "RebalanceRecommendation" }),
			"only a SpotInterruption and a ScheduledChange have a deadline"},
		"a label":       {func(n *v1beta1.NodeNotice) { n.Labels = map[string]string{"a": "b"} }, "may not set or change metadata.labels"},
		"an annotation": {func(n *v1beta1.NodeNotice) { n.Annotations = map[string]string{"a": "b"} }, "may not set or change metadata.annotations"},
		"a finalizer":   {func(n *v1beta1.NodeNotice) { n.Finalizers = []string{"a.b/c"} }, "may not set or change metadata.finalizers"},
		"an owner": {func(n *v1beta1.NodeNotice) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: s.nodeA.Name, UID: s.nodeA.UID}}
		}, "may not set or change metadata.ownerReferences"},
	}
}

func many(count int) (all []v1beta1.MetadataNotice) {
	for i := range count {
		all = append(all, v1beta1.MetadataNotice{ID: fmt.Sprint("imds/", i), Kind: "RebalanceRecommendation", Subject: "s"})
	}
	return all
}

func TestAgentWritesOnlyItsNodeNotice(t *testing.T) {
	s := newStage(t)
	own, foreign := nodeNotice(s.nodeA, nil), nodeNotice(s.nodeB, nil)
	for name, test := range agentEdits(s) {
		t.Run("creates "+name, func(t *testing.T) {
			check(t, s.agentA.Create(t.Context(), nodeNotice(s.nodeA, test.edit), client.DryRunAll), test.want)
		})
	}
	onlyOwn := "the agent of node node-a may write the NodeNotice of that node only, not node-b"
	check(t, s.agentA.Create(t.Context(), nodeNotice(s.nodeB, nil), client.DryRunAll), onlyOwn)
	check(t, s.unbound.Create(t.Context(), nodeNotice(s.nodeA, nil), client.DryRunAll), "this token does not say which node it is bound to")
	if err := s.agentA.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, own); remove(t, foreign) })
	for name, test := range agentEdits(s) {
		if test.edit == nil {
			continue
		}
		edited := own.DeepCopy()
		test.edit(edited)
		t.Run("writes "+name, func(t *testing.T) {
			check(t, s.agentA.Patch(t.Context(), edited, client.MergeFrom(own), client.DryRunAll), test.want)
		})
	}
	withdraw := func(of *v1beta1.NodeNotice) *v1beta1.NodeNotice {
		edited := of.DeepCopy()
		edited.Spec.Notices[0].Withdrawn = true
		return edited
	}
	check(t, s.agentA.Patch(t.Context(), withdraw(foreign), client.MergeFrom(foreign), client.DryRunAll), onlyOwn)
	check(t, s.unbound.Patch(t.Context(), withdraw(own), client.MergeFrom(own), client.DryRunAll), "this token does not say which node it is bound to")
}

// TestAgentHasNoOtherPermissions tries requests that RBAC forbids.
func TestAgentHasNoOtherPermissions(t *testing.T) {
	s := newStage(t)
	own, interruption := nodeNotice(s.nodeA, nil), record("i-0a1b2c3d4e5f60718", "node-a", newNotice("1", "imds"))
	if err := s.agentA.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, own) })
	node := &corev1.Node{}
	check(t, s.agentA.Get(t.Context(), client.ObjectKey{Name: "node-a"}, node), "")
	check(t, s.agentA.Get(t.Context(), client.ObjectKeyFromObject(own), own.DeepCopy()), "")

	edited := own.DeepCopy()
	edited.Status.ObservedGeneration = 7
	check(t, s.agentA.Status().Patch(t.Context(), edited, client.MergeFrom(own)), `cannot patch resource "nodenotices/status"`)
	check(t, s.agentA.Update(t.Context(), own.DeepCopy()), `cannot update resource "nodenotices"`)
	check(t, s.agentA.Delete(t.Context(), own), `cannot delete resource "nodenotices"`)
	check(t, s.agentA.List(t.Context(), &v1beta1.NodeNoticeList{}), `cannot list resource "nodenotices"`)
	// A received time of the year 9000, which would have held up every drain of the cluster.
	interruption.Spec.Notices[0].ReceivedTime = metav1.NewMicroTime(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))
	check(t, s.agentA.Create(t.Context(), interruption.DeepCopy()), `cannot create resource "interruptions"`)
	check(t, s.agentA.Patch(t.Context(), interruption.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{}`))), `cannot patch resource "interruptions"`)
	check(t, s.agentA.Get(t.Context(), client.ObjectKeyFromObject(interruption), &v1beta1.Interruption{}), `cannot get resource "interruptions"`)
	check(t, s.agentA.List(t.Context(), &corev1.NodeList{}), `cannot list resource "nodes"`)
	tainted := node.DeepCopy()
	tainted.Spec.Unschedulable = true
	check(t, s.agentA.Patch(t.Context(), tainted, client.MergeFrom(node)), `cannot patch resource "nodes"`)
	check(t, s.agentA.List(t.Context(), &corev1.PodList{}), `cannot list resource "pods"`)
	check(t, s.agentA.List(t.Context(), &corev1.SecretList{}), `cannot list resource "secrets"`)
}

// The policy also holds if another role lets the agent write other objects of Lifeboat.
func TestAgentPolicyHoldsBeyondRBAC(t *testing.T) {
	s := newStage(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "too-much"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: chart.AgentAccount, Namespace: chart.Namespace}},
	}
	if err := s.admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, binding) })
	until(t, "the policy to refuse what RBAC allows", func() (bool, error) {
		err := s.agentA.Create(t.Context(), record("i-1", "node-a", newNotice("1", "imds")), client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the agent may write NodeNotices only, not interruptions"), err
	})
}

// TestPolicyLimitsAgentsOfEachNamespace checks an agent with a namespace of its own. The
// binding is as the chart renders it with agent.namespace.
func TestPolicyLimitsAgentsOfEachNamespace(t *testing.T) {
	s := newStage(t)
	const namespace = "agents-alone"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chart.AgentAccount}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lifeboat-agent"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: chart.AgentAccount, Namespace: namespace}},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, account, binding} {
		if err := s.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { remove(t, binding) })
	agent := clientOf(t, asIn(t, namespace, chart.AgentAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Node", Name: s.nodeA.Name, UID: s.nodeA.UID,
	}))
	until(t, "the role to be bound", func() (bool, error) {
		err := agent.Create(t.Context(), nodeNotice(s.nodeA, nil), client.DryRunAll)
		return err == nil, err
	})
	check(t, agent.Create(t.Context(), nodeNotice(s.nodeB, nil), client.DryRunAll), "of that node only")
}

// TestPodTokenNamesNode checks the policy with the token that an agent has in a
// cluster. The kubelet requests a token that is bound to the pod, and the API server
// adds the pod's node to it.
func TestPodTokenNamesNode(t *testing.T) {
	s := newStage(t)
	pod := podOf(t, render(t, with(t, "")), "DaemonSet")
	pod.Name, pod.Namespace, pod.Spec.NodeName = "an-agent", chart.Namespace, "node-a"
	if err := s.admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, pod) })
	agent := clientOf(t, as(t, chart.AgentAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	}))
	check(t, agent.Create(t.Context(), nodeNotice(s.nodeA, nil), client.DryRunAll), "")
	check(t, agent.Create(t.Context(), nodeNotice(s.nodeB, nil), client.DryRunAll), "of that node only")
	check(t, agent.Create(t.Context(), nodeNotice(s.nodeA, func(n *v1beta1.NodeNotice) { n.Spec.NodeUID = "x" }), client.DryRunAll), "spec.nodeUID must be")
}

// TestTokenExpiresWithNode checks that the token of an agent is invalid after its
// node was deleted.
func TestTokenExpiresWithNode(t *testing.T) {
	c := admin(t)
	node := newNode(t, "soon-gone")
	agent := clientOf(t, agentOn(t, node))
	if err := agent.Get(t.Context(), client.ObjectKeyFromObject(node), &corev1.Node{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	until(t, "the token to end", func() (bool, error) { // the API server caches results for some seconds
		err := agent.Get(t.Context(), client.ObjectKeyFromObject(node), &corev1.Node{})
		return apierrors.IsUnauthorized(err), err
	})
}
