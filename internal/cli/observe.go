package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// observed is the state of the cluster around a node, or around an interruption
// whose node is gone.
type observed struct {
	now time.Time
	// node is nil if the instance's node is gone.
	node  *corev1.Node
	nodes []corev1.Node
	// record is the current interruption, if any; records are all of them.
	record  *v1beta1.Interruption
	records []v1beta1.Interruption
	policy  policy.Facts
	pauses  []v1beta1.Pause
	// pause is the one that stops the action; nil: none does.
	pause *v1beta1.Pause
	// supposed is true if the notice is hypothetical.
	supposed bool

	pods    []*corev1.Pod
	budgets []*drain.Budget
	owners  drain.Owners
}

// observe reads the input of a decision. It uses the current interruption. If
// there is none, or --kind is set, it uses a hypothetical notice.
func (s *session) observe(ctx context.Context, c cluster, suppose whatIf, arg string) (*observed, error) {
	w := &observed{now: s.now()}
	var err error
	if w.nodes, err = c.nodes(ctx); err != nil {
		return nil, err
	}
	var notFound error
	w.node, notFound = findNode(w.nodes, arg)
	if err := s.observeRecords(ctx, c, w, arg); err != nil {
		return nil, err
	}
	if w.node == nil && w.record == nil {
		return nil, notFound
	}
	return w, w.suppose(suppose)
}

// observeRecords reads policies and interruptions. A cluster without Lifeboat
// has neither, so the defaults apply.
func (s *session) observeRecords(ctx context.Context, c cluster, w *observed, arg string) error {
	w.policy = policy.Facts{Now: w.now, Node: w.node}
	var policies v1beta1.InterruptionPolicyList
	var records v1beta1.InterruptionList
	err := c.list(ctx, "policies", &policies)
	if err == nil {
		err = c.list(ctx, "interruptions", &records)
	}
	if err == nil {
		w.pauses, err = c.pauses(ctx)
	}
	if command.IsNotInstalled(err) {
		s.err.Printf("Lifeboat is not installed in this cluster: the output shows what its built-in defaults would do.\n")
		return nil
	}
	w.records, w.policy.Policies = records.Items, policies.Items
	w.record = openRecord(w.records, w.node, arg)
	return err
}

// openRecord finds the current interruption of a node or, if node is nil, of
// the given name.
func openRecord(records []v1beta1.Interruption, node *corev1.Node, name string) *v1beta1.Interruption {
	id := ""
	if node != nil {
		id, _ = instanceOf(node)
	}
	for i := range records {
		r := &records[i]
		if mine := r.Spec.InstanceID == id || (node == nil && isAbout(r, name)); mine && !record.IsCompleted(r) {
			return r
		}
	}
	return nil
}

// suppose takes the notices from the record, or makes a hypothetical one.
// Approvals and holds apply in both cases.
func (w *observed) suppose(made whatIf) error {
	if w.record != nil {
		w.policy.Approval, w.policy.Since = w.record.Spec.Approval, record.Since(&w.record.Status)
	}
	if w.record != nil && made.kind == "" {
		w.policy = record.Facts(w.record, w.node, w.policy.Policies, w.now)
		return nil
	}
	if w.node == nil {
		return usageErrorf("the node of %s is gone, so no other notice can apply to it: remove --kind", w.record.Spec.InstanceID)
	}
	n, err := made.notice(w.node, w.now)
	w.policy.Notices, w.supposed = []v1beta1.Notice{n}, true
	return err
}

// observePods reads the additional input of a drain plan.
func (w *observed) observePods(ctx context.Context, c cluster, d policy.Decision) error {
	if w.node == nil {
		return nil
	}
	var pods corev1.PodList
	if err := c.list(ctx, "pods of node "+w.node.Name, &pods, client.MatchingFields{"spec.nodeName": w.node.Name}); err != nil {
		return err
	}
	surged := false
	var namespaces []string
	for i := range pods.Items {
		w.pods = append(w.pods, &pods.Items[i])
		namespaces = append(namespaces, pods.Items[i].Namespace)
		surged = surged || pods.Items[i].Labels[v1beta1.LabelSurged] != ""
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	for _, namespace := range namespaces {
		var budgets policyv1.PodDisruptionBudgetList
		if err := c.list(ctx, "PodDisruptionBudgets of namespace "+namespace, &budgets, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range budgets.Items {
			w.budgets = append(w.budgets, drain.NewBudget(&budgets.Items[i]))
		}
	}
	if surged || record.Drains(d.Action) && record.Surges(&d) {
		return w.observeOwners(ctx, c, namespaces)
	}
	return nil
}

// observeOwners reads the objects that decide whether pods may run twice.
func (w *observed) observeOwners(ctx context.Context, c cluster, namespaces []string) error {
	for _, namespace := range namespaces {
		var sets appsv1.ReplicaSetList
		var deployments appsv1.DeploymentList
		var claims corev1.PersistentVolumeClaimList
		for _, l := range []struct {
			what string
			into client.ObjectList
		}{{"ReplicaSets", &sets}, {"Deployments", &deployments}, {"PersistentVolumeClaims", &claims}} {
			if err := c.list(ctx, fmt.Sprintf("%s of namespace %s", l.what, namespace), l.into, client.InNamespace(namespace)); err != nil {
				return err
			}
		}
		for i := range sets.Items {
			w.owners.ReplicaSets = append(w.owners.ReplicaSets, &sets.Items[i])
		}
		for i := range deployments.Items {
			w.owners.Deployments = append(w.owners.Deployments, &deployments.Items[i])
		}
		for i := range claims.Items {
			w.owners.Claims = append(w.owners.Claims, &claims.Items[i])
		}
	}
	return nil
}

// name returns the node's name, or the instance id if the node is gone.
func (w *observed) name() string {
	if w.node != nil {
		return w.node.Name
	}
	return record.NodeName(w.record)
}

func (w *observed) instanceID() string {
	if w.node != nil {
		id, _ := instanceOf(w.node)
		return id
	}
	return w.record.Spec.InstanceID
}

// at returns the decision at another time. If an approval is pending, it
// assumes that a person approves now. A begun time that is not zero assumes
// that the action started then.
func (w *observed) at(d policy.Decision, moment, begun time.Time) policy.Decision {
	facts := w.policy
	facts.Now = moment
	if d.AwaitsApproval && d.ProceedsAt.IsZero() {
		assumed := v1beta1.UserAction{About: d.About}
		assumed.Time.Time = w.now
		facts.Approval = &assumed
	}
	if d.Begun.IsZero() && !begun.IsZero() {
		facts.Begun, facts.BegunFor = begun, d.About
	}
	later, ok := policy.Decide(facts)
	if !ok {
		return d
	}
	return later
}
