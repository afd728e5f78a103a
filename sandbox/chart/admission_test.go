//go:build e2e

package chart_test

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

func newNotice(id, source string) v1alpha1.Notice {
	now := time.Now().Truncate(time.Second)
	return v1alpha1.Notice{
		ID: id, Kind: "SpotInterruption", Source: source,
		Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now),
	}
}

func record(id, node string, notices ...v1alpha1.Notice) *v1alpha1.Interruption {
	return &v1alpha1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec:       v1alpha1.InterruptionSpec{InstanceID: id, NodeName: node, NodeUID: types.UID("uid-" + node), Notices: notices},
	}
}

// stage has two nodes and their agents.
type stage struct {
	admin      client.Client
	nodeA      *corev1.Node
	agentA     client.Client
	controller client.Client
	unbound    client.Client // the agent's account with a token that names no node
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{admin: admin(t), nodeA: newNode(t, "node-a")}
	newNode(t, "node-b")
	s.agentA = clientOf(t, agentOn(t, s.nodeA))
	s.controller = clientOf(t, as(t, chart.ControllerAccount, nil))
	s.unbound = clientOf(t, as(t, chart.AgentAccount, nil))
	until(t, "the policy to be in force", func() (bool, error) {
		err := s.unbound.Create(t.Context(), record("i-tried", "node-a", newNotice("1", "imds")), client.DryRunAll)
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
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v\nwant a Forbidden that says: %s", err, want)
	}
}

func TestAgentCreatesOnlyItsNodesRecords(t *testing.T) {
	s := newStage(t)
	edited := func(edit func(*v1alpha1.Interruption)) *v1alpha1.Interruption {
		r := record("i-1", "node-a", newNotice("1", "imds"))
		edit(r)
		return r
	}
	for name, test := range map[string]struct {
		as     client.Client
		record *v1alpha1.Interruption
		want   string
	}{
		"of its own node":    {s.agentA, record("i-1", "node-a", newNotice("1", "imds")), ""},
		"of two notices":     {s.agentA, record("i-1", "node-a", newNotice("1", "imds"), newNotice("2", "imds")), ""},
		"of another node":    {s.agentA, record("i-1", "node-b", newNotice("1", "imds")), `the agent of node node-a may record interruptions of that node only: spec.nodeName is "node-b"`},
		"of no node":         {s.agentA, record("i-1", "", newNotice("1", "imds")), `spec.nodeName is ""`},
		"of another source":  {s.agentA, record("i-1", "node-a", newNotice("1", "sqs")), "the agent may add notices of the source imds only, not of sqs"},
		"of two sources":     {s.agentA, record("i-1", "node-a", newNotice("1", "imds"), newNotice("2", "ec2")), "the agent may add notices of the source imds only, not of ec2"},
		"under another name": {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Name = "i-2" }), "the record of i-1 must bear that name, not i-2"},
		"with a label":       {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Labels = map[string]string{"a": "b"} }), "may not set or change metadata.labels"},
		"with an annotation": {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Annotations = map[string]string{"a": "b"} }), "may not set or change metadata.annotations"},
		"with a finalizer":   {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Finalizers = []string{"a.b/c"} }), "may not set or change metadata.finalizers"},
		"with an approval":   {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Spec.Approval = word(agentName) }), "may not set or change spec.approval, which is a person's word"},
		"with a hold":        {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Spec.Hold = word(agentName) }), "may not set or change spec.hold"},
		"with a release":     {s.agentA, edited(func(r *v1alpha1.Interruption) { r.Spec.Released = word(agentName) }), "may not set or change spec.released"},
		"with an owner": {s.agentA, edited(func(r *v1alpha1.Interruption) {
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-a", UID: s.nodeA.UID}}
		}), "may not set or change metadata.ownerReferences"},
		"with a token that names no node":    {s.unbound, record("i-1", "node-a", newNotice("1", "imds")), "this token does not say which node it is bound to"},
		"with no node in token nor record":   {s.unbound, record("i-1", "", newNotice("1", "imds")), "this token does not say which node it is bound to"},
		"the controller, of any node":        {s.controller, record("i-1", "node-b", newNotice("1", "sqs")), ""},
		"the administrator, in any manner":   {s.admin, edited(func(r *v1alpha1.Interruption) { r.Labels = map[string]string{"a": "b"} }), ""},
		"the controller, in the agent's way": {s.controller, record("i-1", "node-b", newNotice("1", "imds")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, test.as.Create(t.Context(), test.record, client.DryRunAll), test.want)
		})
	}
}

// agentName is the user name of an agent in the API server.
const agentName = "system:serviceaccount:" + chart.Namespace + ":" + chart.AgentAccount

// word is a value with its author.
func word(by string) *v1alpha1.UserAction {
	return &v1alpha1.UserAction{By: by, Time: metav1.NewMicroTime(time.Now()), About: "SpotInterruption"}
}

func TestAgentChangesOnlyItsNotices(t *testing.T) {
	s := newStage(t)
	fromQueue, fromNode := newNotice("q", "sqs"), newNotice("n", "imds")
	own := record("i-own", "node-a", fromQueue, fromNode)
	own.Labels = map[string]string{"kept": "yes"}
	foreign := record("i-foreign", "node-b", fromQueue)
	homeless := record("i-homeless", "", fromQueue)
	for _, r := range []*v1alpha1.Interruption{own, foreign, homeless} {
		if err := s.admin.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, r) })
	}
	change := func(edit func(*v1alpha1.Notice)) []v1alpha1.Notice {
		q := fromQueue
		edit(&q)
		return []v1alpha1.Notice{q, fromNode}
	}
	for name, test := range map[string]struct {
		record *v1alpha1.Interruption
		edit   func(*v1alpha1.Interruption)
		want   string
	}{
		"adds one of its own":     {own, func(r *v1alpha1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, newNotice("n2", "imds")) }, ""},
		"changes one of its own":  {own, func(r *v1alpha1.Interruption) { r.Spec.Notices[1].Description = "news" }, ""},
		"replaces one of its own": {own, func(r *v1alpha1.Interruption) { r.Spec.Notices[1] = newNotice("n2", "imds") }, ""},
		"adds one as the queue": {own, func(r *v1alpha1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, newNotice("q2", "sqs")) },
			"the agent may add notices of the source imds only, not of sqs"},
		"removes the queue's": {own, func(r *v1alpha1.Interruption) { r.Spec.Notices = []v1alpha1.Notice{fromNode} },
			"the agent may not remove or take over the notice q, which came from sqs"},
		"takes the queue's over": {own, func(r *v1alpha1.Interruption) {
			r.Spec.Notices = change(func(n *v1alpha1.Notice) { n.Source = "imds" })
		},
			"the agent may not remove or take over the notice q, which came from sqs"},
		"changes the queue's": {own, func(r *v1alpha1.Interruption) {
			r.Spec.Notices = change(func(n *v1alpha1.Notice) { n.Withdrawn = true })
		},
			"the agent may change notices of the source imds only"},
		"gives its own out as the queue's": {own, func(r *v1alpha1.Interruption) { r.Spec.Notices[1].Source = "sqs" },
			"the agent may add notices of the source imds only, not of sqs"},
		"moves the record to another node": {own, func(r *v1alpha1.Interruption) { r.Spec.NodeName = "node-b" },
			`the agent of node node-a may not change spec.nodeName to "node-b"`},
		"makes it of another node of that name": {own, func(r *v1alpha1.Interruption) { r.Spec.NodeUID = "other" }, "may not change spec.nodeUID"},
		"adds a label":                          {own, func(r *v1alpha1.Interruption) { r.Labels["a"] = "b" }, "may not set or change metadata.labels"},
		"removes a label":                       {own, func(r *v1alpha1.Interruption) { r.Labels = nil }, "may not set or change metadata.labels"},
		"annotates":                             {own, func(r *v1alpha1.Interruption) { r.Annotations = map[string]string{"a": "b"} }, "may not set or change metadata.annotations"},
		"adds a finalizer":                      {own, func(r *v1alpha1.Interruption) { r.Finalizers = []string{"a.b/c"} }, "may not set or change metadata.finalizers"},
		"writes into another node's": {foreign, func(r *v1alpha1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, fromNode) },
			`the agent of node node-a may not change i-foreign: it is the record of node "node-b"`},
		"takes another node's over": {foreign, func(r *v1alpha1.Interruption) {
			r.Spec.NodeName = "node-a"
			r.Spec.Notices = append(r.Spec.Notices, fromNode)
		}, `it is the record of node "node-b"`},
		"takes over one without a node": {homeless, func(r *v1alpha1.Interruption) { r.Spec.NodeName = "node-a" },
			`it is the record of node ""`},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, patch(t, s.agentA, test.record, test.edit), test.want)
			check(t, patch(t, s.controller, test.record, test.edit), "")
		})
	}
	t.Run("says what is for people to say", func(t *testing.T) {
		check(t, patch(t, s.agentA, own, func(r *v1alpha1.Interruption) { r.Spec.Approval = word(agentName) }), "may not set or change spec.approval")
	})
	t.Run("with a token that names no node", func(t *testing.T) {
		add := func(r *v1alpha1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, newNotice("n2", "imds")) }
		check(t, patch(t, s.unbound, own, add), "this token does not say which node it is bound to")
	})
}

// patch applies an edit as a dry run, in the same way as lifeboatd.
func patch(t *testing.T, c client.Client, r *v1alpha1.Interruption, edit func(*v1alpha1.Interruption)) error {
	t.Helper()
	edited := r.DeepCopy()
	edit(edited)
	return c.Patch(t.Context(), edited, client.MergeFrom(r.DeepCopy()), client.DryRunAll)
}

// TestAgentHasNoOtherPermissions tries requests that RBAC forbids.
func TestAgentHasNoOtherPermissions(t *testing.T) {
	s := newStage(t)
	own := record("i-own-2", "node-a", newNotice("1", "imds"))
	if err := s.agentA.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, own) })
	node := &corev1.Node{}
	check(t, s.agentA.Get(t.Context(), client.ObjectKey{Name: "node-a"}, node), "")
	check(t, s.agentA.Get(t.Context(), client.ObjectKeyFromObject(own), own), "")

	edited := own.DeepCopy()
	edited.Status.Phase = v1alpha1.PhaseCompleted
	check(t, s.agentA.Status().Patch(t.Context(), edited, client.MergeFrom(own)), `cannot patch resource "interruptions/status"`)
	check(t, s.agentA.Update(t.Context(), own.DeepCopy()), `cannot update resource "interruptions"`)
	check(t, s.agentA.Delete(t.Context(), own), `cannot delete resource "interruptions"`)
	check(t, s.agentA.List(t.Context(), &v1alpha1.InterruptionList{}), `cannot list resource "interruptions"`)
	check(t, s.agentA.List(t.Context(), &corev1.NodeList{}), `cannot list resource "nodes"`)
	tainted := node.DeepCopy()
	tainted.Spec.Unschedulable = true
	check(t, s.agentA.Patch(t.Context(), tainted, client.MergeFrom(node)), `cannot patch resource "nodes"`)
	check(t, s.agentA.List(t.Context(), &corev1.PodList{}), `cannot list resource "pods"`)
	check(t, s.agentA.List(t.Context(), &corev1.SecretList{}), `cannot list resource "secrets"`)
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
	check(t, agent.Create(t.Context(), record("i-1", "node-a", newNotice("1", "imds")), client.DryRunAll), "")
	check(t, agent.Create(t.Context(), record("i-1", "node-b", newNotice("1", "imds")), client.DryRunAll), "of that node only")
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
