package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/forecast"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

const planHelp = `Show what would happen to each pod of a node if it were interrupted now: when
the pod is asked to stop, how long it gets, and why. A node that has an
interruption already is shown with that one, unless --kind is given.

It is worked out by the code that the controller itself runs, played forward in
time and assuming that every pod uses its whole grace period, and that a pod
which leaves is replaced by one that is ready after --replaced-in.

Exit code 3 says that some pod cannot leave with its whole grace period before
the deadline.`

type planFlags struct {
	kind                   string
	in, replacedIn, margin time.Duration
}

func newPlan(s *session) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan NODE|INSTANCE",
		Short: "Show what an interruption would do to a node's pods, and why",
		Long:  planHelp,
		Example: `  lifeboat plan ip-10-0-1-5.ec2.internal
  lifeboat plan ip-10-0-1-5.ec2.internal --kind spot --in 90s

  # Is every node ready to be reclaimed?
  for n in $(kubectl get nodes -o name); do
    lifeboat plan ${n#node/} >/dev/null || echo "${n#node/} is not"
  done`,
		Args: arguments(1, 1, "one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.in < 0 || f.replacedIn < 0 || f.margin < 0 {
				return usageErrorf("--in, --replaced-in and --margin cannot be negative")
			}
			return s.plan(cmd.Context(), f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "spot (the default), rebalance, or a kind as policies name it")
	flags.DurationVar(&f.in, "in", 2*time.Minute, "time until the instance is gone, for kinds that have a deadline")
	flags.DurationVar(&f.replacedIn, "replaced-in", 20*time.Second, "how long it takes until a pod that left is replaced by a ready one")
	flags.DurationVar(&f.margin, "margin", 10*time.Second, "time that lifeboatd keeps between a pod's end and the deadline")
	return cmd
}

func (s *session) plan(ctx context.Context, f planFlags, arg string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	node, err := findNode(nodes, arg)
	if err != nil {
		return err
	}
	w, err := s.observe(ctx, c, f, node)
	if err != nil {
		return err
	}
	planned := w.foretell(f)
	if s.isJSON() {
		err = s.writeJSON(planned)
	} else {
		planned.write(s.out, w.now)
	}
	if err == nil && !planned.Fits {
		return exitError{code: ExitDoesNotFit}
	}
	return err
}

// observed is what the cluster says about a node.
type observed struct {
	now     time.Time
	node    *corev1.Node
	pods    []*corev1.Pod
	budgets []*policyv1.PodDisruptionBudget
	policy  policy.Facts
	// supposed is true where the notice is made up.
	supposed bool
}

func (s *session) observe(ctx context.Context, c cluster, f planFlags, node *corev1.Node) (*observed, error) {
	w := &observed{now: s.now(), node: node}
	var pods corev1.PodList
	if err := c.list(ctx, "pods of node "+node.Name, &pods, client.MatchingFields{"spec.nodeName": node.Name}); err != nil {
		return nil, err
	}
	var namespaces []string
	for i := range pods.Items {
		w.pods = append(w.pods, &pods.Items[i])
		namespaces = append(namespaces, pods.Items[i].Namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		var budgets policyv1.PodDisruptionBudgetList
		if err := c.list(ctx, "PodDisruptionBudgets of namespace "+namespace, &budgets, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for i := range budgets.Items {
			w.budgets = append(w.budgets, &budgets.Items[i])
		}
	}
	record, policies, err := s.recorded(ctx, c, node)
	if err != nil {
		return nil, err
	}
	w.policy = policy.Facts{Now: w.now, Node: node, Policies: policies}
	if record != nil && f.kind == "" {
		w.policy.Notices = record.Spec.Notices
		if since := record.Status.Since; since != nil {
			w.policy.Since = since.Time
		}
		return w, nil
	}
	made, err := suppose(f, w.now)
	w.policy.Notices, w.supposed = []v1alpha1.Notice{made}, true
	return w, err
}

// recorded returns the node's interruption under way, if there is one, and the
// policies. A cluster without Lifeboat has neither, and the defaults rule.
func (s *session) recorded(ctx context.Context, c cluster, node *corev1.Node) (*v1alpha1.Interruption, []v1alpha1.InterruptionPolicy, error) {
	var policies v1alpha1.InterruptionPolicyList
	var records v1alpha1.InterruptionList
	err := c.list(ctx, "policies", &policies)
	if err == nil {
		err = c.list(ctx, "interruptions", &records)
	}
	if isNotInstalled(err) {
		s.err.Printf("Lifeboat is not installed in this cluster: this is what its built-in defaults would do.\n")
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	id, _ := instanceOf(node)
	for i := range records.Items {
		if r := &records.Items[i]; id != "" && r.Spec.InstanceID == id && !isCompleted(r) {
			return r, policies.Items, nil
		}
	}
	return nil, policies.Items, nil
}

// suppose makes up a notice that comes now.
func suppose(f planFlags, now time.Time) (v1alpha1.Notice, error) {
	n := v1alpha1.Notice{
		ID: "supposed", Source: "plan", Kind: f.kind,
		Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now),
	}
	switch f.kind {
	case "", kindSpot:
		n.Kind = notice.KindSpotInterruption
	case kindRebalance:
		n.Kind = notice.KindRebalanceRecommendation
	}
	switch n.Kind {
	case notice.KindSpotInterruption:
		n.InstanceAction = "terminate"
		n.Deadline = notice.At(now.Add(f.in), v1alpha1.DeadlineHard)
	case notice.KindRebalanceRecommendation:
	case notice.KindInstanceStateChange:
		n.InstanceState = notice.StateShuttingDown
		n.Deadline = notice.At(now, v1alpha1.DeadlineHard)
	default:
		return n, usageErrorf("unknown kind %q: write spot, rebalance, or one of %s", f.kind, strings.Join(notice.Kinds(), ", "))
	}
	return n, nil
}

// foretell decides, and plays the plan forward.
func (w *observed) foretell(f planFlags) planned {
	p := planned{Node: w.node.Name, Supposed: w.supposed, Fits: true, Pods: []plannedPod{}}
	p.InstanceID, _ = instanceOf(w.node)
	decision, ok := policy.Decide(w.policy)
	if !ok {
		p.Decision.Message = "no notice counts"
		return p
	}
	p.Kind, p.Decision, p.Deadline = decision.Notice.Kind, decision.Decision, decision.Deadline
	facts := drain.Facts{
		Now: w.now, Deadline: decision.Deadline, InstanceGone: decision.InstanceGone,
		DoNotDisrupt: decision.DoNotDisrupt, Margin: f.margin, Pods: w.pods, Budgets: w.budgets,
	}
	if begins := decision.NotBefore; begins.After(w.now) {
		facts.Now, p.Begins = begins, &begins
	}
	if decision.Action != v1alpha1.ActionDrain {
		p.leaveAlone(facts)
		return p
	}
	for _, fate := range forecast.Make(forecast.Facts{Facts: facts, Replaced: f.replacedIn}) {
		p.add(fate, w.now)
	}
	return p
}

// leaveAlone lists the pods of a node that is not drained. Those that would
// have to leave go down with the instance if it has a hard deadline.
func (p *planned) leaveAlone(facts drain.Facts) {
	doomed := facts.Deadline != nil && facts.Deadline.Type == v1alpha1.DeadlineHard
	for _, v := range drain.NewPlan(facts).Verdicts {
		fate := forecast.Fate{Pod: v.Pod, Step: drain.StepStays, Reason: v.Reason, Fits: true}
		if v.Step != drain.StepStays {
			fate.Fits = !doomed
			fate.Reason = fmt.Sprintf("the action is %s, so nobody moves it", p.Decision.Action)
			if doomed {
				fate.Reason += ", and it goes down with the instance"
			}
		}
		p.add(fate, facts.Now)
	}
	slices.SortStableFunc(p.Pods, func(a, b plannedPod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// style is how the fate of a pod looks.
func (p plannedPod) style() terminal.Style {
	switch {
	case !p.Fits:
		return terminal.Bad
	case p.Overrides != "":
		return terminal.Warn
	case p.Step == drain.StepStays:
		return terminal.Dim
	}
	return terminal.Plain
}
