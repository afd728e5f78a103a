//go:build e2e

package chart_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// authors are the users who write, with unlimited requests.
type authors struct {
	t                   *testing.T
	admin               client.Client
	controllers, agents []author
	operators           []author
	karpenter, other    author
	nodeA, nodeB, nodeC *corev1.Node
	claims              *claims
	now                 time.Time // the time of Karpenter's lease
	serial              int
}

// all returns a client that RBAC allows everything, so that only admission limits it.
func all(t *testing.T, user string, extra map[string][]string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}, Extra: extra}
	return clientOf(t, config)
}

func newWriters(t *testing.T) *authors {
	t.Helper()
	w := &authors{
		t: t, admin: all(t, "admin@example.com", nil), now: time.Now().Add(time.Hour).Truncate(time.Second),
		nodeA: newNode(t, "node-a"), nodeB: newNode(t, "node-b"), nodeC: newNode(t, "node-c"),
	}
	w.other = author{user: "carol@example.com", client: all(t, "carol@example.com", nil), writesNotices: true, requests: true}
	w.karpenter = author{user: karpenterUser, client: all(t, karpenterUser, nil), writesNotices: true, requests: true}
	w.controllers = []author{{user: controllerUser, client: all(t, controllerUser, nil)}, w.other}
	w.addAgents()
	w.addOperators()
	w.claims = newClaims(t)
	renewed := metav1.NewMicroTime(w.now)
	lease := &coordinationv1.Lease{ObjectMeta: w.claims.lease.ObjectMeta, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	if err := w.admin.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	claim := w.claims.create("first", nil)
	claim.SetAnnotations(map[string]string{v1beta1.AnnotationGuardedUntil: w.now.Add(time.Hour).Format(time.RFC3339)})
	if err := w.admin.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	settle(t, func() error { return w.claims.remove(w.karpenter.client, claim) }, guarded)
	return w
}

// addAgents adds agents with a token that is bound to their node, and tokens with other claims.
func (w *authors) addAgents() {
	for _, node := range []*corev1.Node{w.nodeA, w.nodeB, w.nodeC} {
		w.agents = append(w.agents, author{user: agentUser, node: node.Name, nodeUID: string(node.UID), client: clientOf(w.t, agentOn(w.t, node))})
	}
	const name, uid = "authentication.kubernetes.io/node-name", "authentication.kubernetes.io/node-uid"
	w.agents = append(w.agents,
		author{user: agentUser, client: clientOf(w.t, as(w.t, chart.AgentAccount, nil))},
		author{user: agentUser, client: all(w.t, agentUser, map[string][]string{uid: {string(w.nodeA.UID)}})},
		author{user: agentUser, client: all(w.t, agentUser, map[string][]string{name: {"node-a"}}), node: "node-a"},
		author{user: agentUser, client: all(w.t, agentUser, map[string][]string{name: {"node-c"}, uid: {"other"}}), node: "node-c", nodeUID: "other"},
		w.other)
}

// addOperators adds users with the chart's role for operators, with less and with more.
func (w *authors) addOperators() {
	group := []string{"lifeboat.dev"}
	grant(w.t, "erin@example.com", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"interruptions"}, Verbs: []string{"get", "list", "create", "patch"}})
	grant(w.t, "dave@example.com", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"interruptions/notices"}, Verbs: []string{"update"}})
	for _, o := range []author{
		{user: alice, requests: true}, {user: bob, requests: true}, {user: "erin@example.com"},
		{user: "dave@example.com", requests: true, writesNotices: true},
	} {
		config := rest.CopyConfig(cluster)
		if o.requests {
			config = operator(w.t, o.user)
		}
		config.QPS = -1
		config.Impersonate = rest.ImpersonationConfig{UserName: o.user, Groups: []string{"system:authenticated"}}
		o.client = clientOf(w.t, config)
		w.operators = append(w.operators, o)
	}
	w.operators = append(w.operators, w.other)
}

// cast is the stored objects that random writes change.
type cast struct {
	*authors
	topics map[string]func(*rand.Rand) (attempt, error)
	stored []client.Object
}

// store creates an object for the tests to change.
func (c *cast) store(o client.Object) {
	c.t.Helper()
	until(c.t, "the object to be stored", func() (bool, error) {
		err := c.admin.Create(c.t.Context(), o)
		return err == nil, err
	})
	c.stored = append(c.stored, o)
}

// name returns a name that no other object has.
func (w *authors) name(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s-%d", prefix, w.serial)
}

// remove deletes the stored objects with their finalizers.
func (c *cast) remove() {
	for _, o := range c.stored {
		none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		err := c.admin.Patch(context.Background(), o, none)
		if err == nil {
			err = c.admin.Delete(context.Background(), o, client.GracePeriodSeconds(0))
		}
		if err != nil && !apierrors.IsNotFound(err) {
			c.t.Error(err)
		}
	}
}

// metadata returns random metadata of an object that exists, with foreign keys and Lifeboat's.
func (c *cast) metadata(rnd *rand.Rand, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, key := range labelKeys {
		if rnd.IntN(3) == 0 {
			m.Labels[key] = fmt.Sprint("v", rnd.IntN(3))
		}
	}
	for _, key := range annotationKeys {
		if rnd.IntN(3) == 0 {
			m.Annotations[key] = fmt.Sprint("v", rnd.IntN(3))
		}
	}
	if rnd.IntN(4) == 0 {
		m.Finalizers = []string{"example.com/stay"}
	}
	if rnd.IntN(4) == 0 {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: c.nodeA.Name, UID: c.nodeA.UID}}
	}
	return m
}

var (
	labelKeys = []string{
		"app", "pod-template-hash", "lifeboat.dev/surged", "lifeboat.dev/new", "lifeboat.device/x", "x.lifeboat.dev/y",
		"node.kubernetes.io/exclude-from-external-load-balancers", "node-role.kubernetes.io/control-plane", "example.com/lifeboat.dev",
	}
	annotationKeys = []string{
		"example.com/a", "lifeboat.dev/original-state", "lifeboat.dev/surge-origin", "karpenter.sh/do-not-disrupt",
		"node.alpha.kubernetes.io/ttl", "lifeboat.development/x", "cluster-autoscaler.kubernetes.io/safe-to-evict",
	}
)

// metadataChanges are those of any object.
func metadataChanges[O client.Object]() []change[O] {
	set := func(rnd *rand.Rand, m map[string]string, keys []string) map[string]string {
		key := keys[rnd.IntN(len(keys))]
		if m == nil {
			m = map[string]string{}
		}
		switch rnd.IntN(4) {
		case 0:
			delete(m, key)
		case 1: // all of them, as a patch from an incomplete copy does
			return nil
		default:
			m[key] = fmt.Sprint("v", rnd.IntN(4))
		}
		return m
	}
	return []change[O]{
		{"nothing", func(*rand.Rand, O) {}},
		{"a label", func(rnd *rand.Rand, o O) { o.SetLabels(set(rnd, o.GetLabels(), labelKeys)) }},
		{"an annotation", func(rnd *rand.Rand, o O) { o.SetAnnotations(set(rnd, o.GetAnnotations(), annotationKeys)) }},
		{"finalizers", func(rnd *rand.Rand, o O) { o.SetFinalizers(pick(rnd, nil, []string{"example.com/other"})) }},
		{"owners", func(rnd *rand.Rand, o O) { o.SetOwnerReferences(pick(rnd, nil, owners("v1", "Namespace"))) }},
	}
}
