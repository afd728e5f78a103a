//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// kubelet has the credentials of the stolen node's kubelet.
func (r *redTeam) kubelet() attacker {
	c := r.as("system:node:"+r.stolen.PrivateDNSName, "system:nodes")
	own := func(ctx context.Context) (*corev1.Node, error) {
		node := &corev1.Node{}
		return node, c.Get(ctx, client.ObjectKey{Name: r.stolen.PrivateDNSName}, node)
	}
	victim := "aws:///us-east-1a/" + r.claimed.ID
	return attacker{"kubelet", []act{
		{name: "labels its node", do: func(ctx context.Context, rnd *rand.Rand) error {
			node, err := own(ctx)
			if err != nil {
				return err
			}
			before := node.DeepCopy()
			node.Labels["karpenter.sh/nodepool"] = fmt.Sprint("pool-", rnd.IntN(3))
			return c.Patch(ctx, node, client.MergeFrom(before))
		}},
		{name: "registers a node of another name", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ghost-", rnd.Uint32())}, Spec: corev1.NodeSpec{ProviderID: victim},
			})
		}},
		{name: "changes its provider id", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			node, err := own(ctx)
			if err != nil {
				return err
			}
			before := node.DeepCopy()
			node.Spec.ProviderID = fmt.Sprintf("aws:///us-east-1a/i-0%016x", rnd.Uint64())
			return c.Patch(ctx, node, client.MergeFrom(before))
		}},
		{name: "removes the cordon of its node", refused: true, do: func(ctx context.Context, _ *rand.Rand) error {
			node, err := own(ctx)
			if err != nil {
				return err
			}
			before := node.DeepCopy()
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule})
			return c.Patch(ctx, node, client.MergeFrom(before))
		}},
		{name: "registers again as another instance", do: func(ctx context.Context, _ *rand.Rand) error {
			// Kubelets cannot delete their Node. This simulates any other deletion.
			node, err := own(ctx)
			if err != nil {
				return err
			}
			if err := r.client.Delete(ctx, node); err != nil {
				return err
			}
			return c.Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: map[string]string{corev1.LabelHostname: node.Name}},
				Spec:       corev1.NodeSpec{ProviderID: victim},
			})
		}},
	}}
}

// tenant may do all that the ClusterRole admin allows in one namespace.
func (r *redTeam) tenant() attacker {
	const namespace, user = "tenant", "tenant@example.com"
	r.apply(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "admin"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		},
	)
	c := r.as(user)
	pod := func(rnd *rand.Rand, annotations map[string]string) *corev1.Pod {
		nodes := slices.Concat(r.bystanders, r.forged, []ec2.Instance{r.stolen, r.stolenPool})
		spec := template(map[string]string{"app": fmt.Sprint("t", rnd.IntN(3))}, time.Second)
		maps.Copy(spec.Annotations, annotations)
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprint("pod-", rnd.Uint32()), Labels: spec.Labels, Annotations: spec.Annotations,
			},
			Spec: pinned(spec.Spec, nodes[rnd.IntN(len(nodes))].PrivateDNSName),
		}
	}
	return attacker{"tenant", []act{
		{name: "creates pods with large annotations", do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, pod(rnd, map[string]string{"pad": strings.Repeat("x", 200<<10)}))
		}},
		{name: "creates pods that refuse disruption", do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, pod(rnd, map[string]string{"karpenter.sh/do-not-disrupt": "true"}))
		}},
		{name: "creates pods that look surged", do: func(ctx context.Context, rnd *rand.Rand) error {
			p := pod(rnd, nil)
			p.Labels["lifeboat.dev/surged"] = "true"
			p.Finalizers = []string{"example.com/hang"}
			return c.Create(ctx, p)
		}},
		{name: "creates budgets that allow nothing", do: func(ctx context.Context, rnd *rand.Rand) error {
			none := intstr.FromInt(0)
			return c.Create(ctx, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("budget-", rnd.Uint32())},
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{}},
			})
		}},
		{name: "writes an Interruption", refused: true, do: func(ctx context.Context, _ *rand.Rand) error {
			return c.Create(ctx, r.forgedRecord("sqs"))
		}},
	}}
}

// forgedRecord is an Interruption of a bystander.
func (r *redTeam) forgedRecord(source string) *v1beta1.Interruption {
	in, now := r.bystanders[0], time.Now()
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: in.ID},
		Spec:       v1beta1.InterruptionSpec{InstanceID: in.ID, NodeName: in.PrivateDNSName, Notices: []v1beta1.Notice{forgedNotice(source, now)}},
	}
}

func forgedNotice(source string, at time.Time) v1beta1.Notice {
	return v1beta1.Notice{
		ID: fmt.Sprint("forged-", at.UnixNano()), Kind: "SpotInterruption", Source: source, InstanceAction: "terminate",
		Time: metav1.NewTime(at), ReceivedTime: metav1.NewMicroTime(at.AddDate(6000, 0, 0)),
	}
}

// policyAuthor may write InterruptionPolicies. What a valid policy says about nodes is the
// author's right, so these policies select none of the cluster's nodes, or only have hooks.
func (r *redTeam) policyAuthor() attacker {
	const user = "author@example.com"
	r.apply(
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "policy-author"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"interruptionpolicies"},
				Verbs: []string{"create", "update", "patch", "delete", "get", "list"},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "policy-author"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "policy-author"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		},
	)
	c := r.as(user)
	local := r.listenForWebhooks()
	policy := func(rnd *rand.Rand, hooks ...v1beta1.Hook) *v1beta1.InterruptionPolicy {
		return &v1beta1.InterruptionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p-", rnd.Uint32())},
			Spec: v1beta1.InterruptionPolicySpec{
				Priority: int32(rnd.IntN(1000)), Hooks: hooks,
				Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain}},
			},
		}
	}
	job := func(namespace, spec string) v1beta1.Hook {
		return v1beta1.Hook{Name: "job", When: "BeforeDrain", Timeout: &metav1.Duration{Duration: time.Second}, Job: &v1beta1.HookJob{
			Namespace: namespace, Template: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":` + spec + `}}}`)},
		}}
	}
	const container = `"containers":[{"name":"main","image":"x"}]`
	return attacker{"policy author", []act{
		{name: "runs a Job as the controller", do: func(ctx context.Context, rnd *rand.Rand) error {
			account := []string{"serviceAccount", "serviceAccountName"}[rnd.IntN(2)]
			namespace := []string{chart.Namespace, "default", ""}[rnd.IntN(3)]
			return c.Create(ctx, policy(rnd, job(namespace, fmt.Sprintf(`{%q:%q,%s}`, account, chart.ControllerAccount, container))))
		}},
		{name: "runs a privileged Job", do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, policy(rnd, job(chart.Namespace, `{"hostNetwork":true,"hostPID":true,`+container+`}`)))
		}},
		{name: "calls a local address", do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, policy(rnd, v1beta1.Hook{Name: "call", When: "BeforeDrain", Timeout: &metav1.Duration{Duration: time.Second},
				Webhook: &v1beta1.Webhook{URL: local}}))
		}},
		{name: "writes many policies of no node", do: func(ctx context.Context, rnd *rand.Rand) error {
			for range 10 {
				p := policy(rnd)
				p.Spec.Nodes.MatchLabels = map[string]string{"no": strings.Repeat("x", rnd.IntN(64))}
				if err := c.Create(ctx, p); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "deletes a policy", do: func(ctx context.Context, rnd *rand.Rand) error {
			var all v1beta1.InterruptionPolicyList
			if err := c.List(ctx, &all); err != nil || len(all.Items) == 0 {
				return err
			}
			return c.Delete(ctx, &all.Items[rnd.IntN(len(all.Items))])
		}},
		{name: "writes an Interruption", refused: true, do: func(ctx context.Context, _ *rand.Rand) error {
			return c.Create(ctx, r.forgedRecord("sqs"))
		}},
	}}
}

// listenForWebhooks returns the URL of a local listener that no webhook may reach.
func (r *redTeam) listenForWebhooks() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.t.Error("a webhook of a policy reached a local address")
			c.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

// operator has the chart's role for operators.
func (r *redTeam) operator() attacker {
	const user = "operator@example.com"
	r.apply(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lifeboat-operator"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	})
	c := r.as(user)
	patch := func(ctx context.Context, rnd *rand.Rand, edit func(*v1beta1.Interruption)) error {
		var in v1beta1.Interruption
		if err := c.Get(ctx, client.ObjectKey{Name: r.forged[rnd.IntN(len(r.forged))].ID}, &in); err != nil {
			return errNothingToDo
		}
		before := in.DeepCopy()
		edit(&in)
		return c.Patch(ctx, &in, client.MergeFrom(before))
	}
	said := func(by string) *v1beta1.UserAction {
		return &v1beta1.UserAction{By: by, Time: metav1.NowMicro()}
	}
	return attacker{"operator", []act{
		{name: "holds a drain", do: func(ctx context.Context, rnd *rand.Rand) error {
			return patch(ctx, rnd, func(in *v1beta1.Interruption) { in.Spec.Hold = said(user) })
		}},
		{name: "approves in the year 8026", do: func(ctx context.Context, rnd *rand.Rand) error {
			return patch(ctx, rnd, func(in *v1beta1.Interruption) {
				in.Spec.Approval = said(user)
				in.Spec.Approval.Time = metav1.NewMicroTime(time.Now().AddDate(6000, 0, 0))
			})
		}},
		{name: "approves in another name", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return patch(ctx, rnd, func(in *v1beta1.Interruption) { in.Spec.Approval = said("someone@example.com") })
		}},
		{name: "adds a notice", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return patch(ctx, rnd, func(in *v1beta1.Interruption) {
				in.Spec.Notices = append(in.Spec.Notices, forgedNotice("ec2", time.Now()))
			})
		}},
		{name: "creates an Interruption", refused: true, do: func(ctx context.Context, _ *rand.Rand) error {
			return c.Create(ctx, r.forgedRecord("sqs"))
		}},
		{name: "changes a status", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			var in v1beta1.Interruption
			if err := c.Get(ctx, client.ObjectKey{Name: r.forged[rnd.IntN(len(r.forged))].ID}, &in); err != nil {
				return errNothingToDo
			}
			in.Status.Phase = v1beta1.PhaseCompleted
			return c.Status().Update(ctx, &in)
		}},
	}}
}
