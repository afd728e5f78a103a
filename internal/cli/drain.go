package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// maxNotices is the CRD's limit for the notices of an Interruption.
const maxNotices = 32

const drainHelp = `Ask Lifeboat to drain nodes, as it does before an interruption: with replacement
capacity first, surge, the hooks of the policy and PodDisruptionBudgets. Your
request is a notice of kind Requested in the Interruption of the node's instance.

Lifeboat does not end the instance, and keeps the node cordoned until you run
lifeboat uncordon. The budget of the policy limits how many nodes drain at once.

With --by, the pods leave by that time: a pod that a budget still refuses is then
deleted with its own grace period, and the policy's budget of nodes does not count.
Without it, pods wait for their budgets as long as necessary.`

type drainFlags struct {
	selection

	by     time.Duration
	note   string
	cancel bool
}

func newDrain(s *session) *cobra.Command {
	var f drainFlags
	cmd := &cobra.Command{
		Use:   "drain NODE|INSTANCE...",
		Short: "Drain nodes with Lifeboat's planner",
		Long:  drainHelp,
		Example: `  lifeboat drain ip-10-0-1-5.ec2.internal
  lifeboat drain -l karpenter.sh/nodepool=web --note "new AMI"
  lifeboat drain ip-10-0-1-5.ec2.internal --by 10m`,
		Args: f.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len([]rune(f.note)) > maxNoteLength:
				return usageErrorf("--note has %d characters: the limit is %d", len([]rune(f.note)), maxNoteLength)
			case cmd.Flags().Changed("by") && f.by <= 0:
				return usageErrorf("invalid --by %s: write a duration from now, such as 10m", f.by)
			}
			return s.request(cmd.Context(), &f, args)
		},
	}
	f.register(cmd)
	cmd.Flags().DurationVar(&f.by, "by", 0, "time from now by which the pods have left, such as 10m (default: no limit)")
	cmd.Flags().StringVar(&f.note, "note", "", "reason, for people who read it later")
	return command.Outputs(cmd, command.OutputText, command.OutputJSON, command.OutputName)
}

func newUncordon(s *session) *cobra.Command {
	f := drainFlags{cancel: true}
	cmd := &cobra.Command{
		Use:   "uncordon NODE|INSTANCE...",
		Short: "Withdraw the request to drain nodes",
		Long: `Withdraw a request of lifeboat drain. Lifeboat stops the drain and makes the node
as it was before. Another notice about the node still applies.`,
		Example: `  lifeboat uncordon ip-10-0-1-5.ec2.internal
  lifeboat uncordon -l karpenter.sh/nodepool=web`,
		Args: f.check,
		RunE: func(cmd *cobra.Command, args []string) error { return s.request(cmd.Context(), &f, args) },
	}
	f.register(cmd)
	return command.Outputs(cmd, command.OutputText, command.OutputJSON, command.OutputName)
}

// requestResult is what was requested about one node.
type requestResult struct {
	Interruption string     `json:"interruption"`
	InstanceID   string     `json:"instanceID"`
	Node         string     `json:"node"`
	Requested    string     `json:"requested"`
	By           string     `json:"by"`
	Deadline     *time.Time `json:"deadline,omitempty"`
	Next         string     `json:"next"`
}

// request writes the request for every node. A failure for one does not affect the others.
func (s *session) request(ctx context.Context, f *drainFlags, args []string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	by, err := c.whoami(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.requestedNodes(ctx, f, args)
	if err != nil {
		return err
	}
	var all []requestResult
	var failures []error
	for i := range nodes {
		done, err := s.requestFor(ctx, c, f, &nodes[i], by)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		all = append(all, done)
		done.print(s)
	}
	if s.isJSON() && len(all) > 0 {
		if err := s.writeJSON(all); err != nil {
			return err
		}
	}
	return s.reportAllButLast(failures)
}

func (r requestResult) print(s *session) {
	switch s.flags.Output {
	case command.OutputText:
		s.out.Printf("%s by %s: %s (%s)\n", r.Requested, r.By, s.out.Paint(terminal.Bold, r.Node), r.InstanceID)
		s.out.Fact(factIndent, "next", terminal.Plain, r.Next)
	case command.OutputName:
		s.out.Printf("interruption.%s/%s\n", v1beta1.GroupVersion.Group, r.Interruption)
	}
}

// requestedNodes returns the nodes of the arguments or of the selection.
func (c cluster) requestedNodes(ctx context.Context, f *drainFlags, args []string) ([]corev1.Node, error) {
	nodes, err := c.selectedNodes(ctx, f.labels)
	switch {
	case err != nil:
		return nil, err
	case len(args) == 0 && len(nodes) == 0:
		return nil, fmt.Errorf("no node has the labels %s; `kubectl get nodes --show-labels` shows the labels", f.labels)
	case len(args) == 0:
		return nodes, nil
	}
	var found []corev1.Node
	for _, arg := range args {
		node, err := findNode(nodes, arg)
		if err != nil {
			return nil, err
		}
		found = append(found, *node)
	}
	return found, nil
}

// requestFor writes the request about one node.
func (s *session) requestFor(ctx context.Context, c cluster, f *drainFlags, node *corev1.Node, by string) (requestResult, error) {
	target, err := targetOf(node)
	if err != nil {
		return requestResult{}, err
	}
	r := requestResult{Interruption: target.InstanceID, InstanceID: target.InstanceID, Node: node.Name, By: by}
	err = retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }, func() error {
		limited, cancel := c.limit(ctx)
		defer cancel()
		var in v1beta1.Interruption
		err := c.Get(limited, client.ObjectKey{Name: target.InstanceID}, &in)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading the interruption of %s: %w", node.Name, err)
		case f.cancel:
			return c.withdraw(limited, &r, &in)
		case apierrors.IsNotFound(err):
			in.Name = target.InstanceID
			in.Spec = v1beta1.InterruptionSpec{
				InstanceID: target.InstanceID, NodeName: node.Name, NodeUID: node.UID, Notices: []v1beta1.Notice{f.notice(by, s.now())},
			}
			r.describe(&in.Spec.Notices[0])
			return writing(node.Name, c.Create(limited, &in))
		}
		return c.addRequest(limited, &r, &in, f.notice(by, statementTime(&in, s.now())))
	})
	return r, err
}

// notice is the notice of the request. Its deadline is an estimate: no pod gets less than its own
// grace period, because nothing ends the instance then.
func (f *drainFlags) notice(by string, now time.Time) v1beta1.Notice {
	n := v1beta1.Notice{
		ID: "requested-" + string(uuid.NewUUID()), Kind: notice.KindRequested, Source: notice.SourceUser,
		Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now), Description: "requested by " + by,
	}
	if f.note != "" {
		n.Description += ": " + f.note
	}
	if f.by > 0 {
		n.Deadline = notice.At(now.Add(f.by).Truncate(time.Second), v1beta1.DeadlineEstimated)
	}
	return n
}

// openRequest returns the index of a request that applies, or -1.
func openRequest(in *v1beta1.Interruption) int {
	for i := range in.Spec.Notices {
		n := &in.Spec.Notices[i]
		if n.Kind == notice.KindRequested && !n.Withdrawn && len(notice.Unanswered([]v1beta1.Notice{*n}, notice.Handled(&in.Status))) > 0 {
			return i
		}
	}
	return -1
}

// addRequest adds the notice to an Interruption.
func (c cluster) addRequest(ctx context.Context, r *requestResult, in *v1beta1.Interruption, n v1beta1.Notice) error {
	switch {
	case openRequest(in) >= 0 && !notice.Finished(in):
		return fmt.Errorf("the drain of %s is requested already; to change the request, run `lifeboat uncordon %s` first", r.Node, r.Node)
	case len(in.Spec.Notices) >= maxNotices:
		return fmt.Errorf("the interruption of %s has %d notices, which is the limit: use `kubectl drain %s`", r.Node, maxNotices, r.Node)
	}
	before := in.DeepCopy()
	in.Spec.Notices = append(in.Spec.Notices, n)
	r.describe(&n)
	return writing(r.Node, c.Patch(ctx, in, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// withdraw withdraws the open requests.
func (c cluster) withdraw(ctx context.Context, r *requestResult, in *v1beta1.Interruption) error {
	if openRequest(in) < 0 {
		return fmt.Errorf("no drain of %s is requested, so there is nothing to withdraw; `kubectl uncordon %s` undoes a cordon of kubectl", r.Node, r.Node)
	}
	before := in.DeepCopy()
	for i := openRequest(in); i >= 0; i = openRequest(in) {
		in.Spec.Notices[i].Withdrawn = true
	}
	r.Requested, r.Next = "withdrawn", "the drain stops, and the node becomes as it was before"
	return writing(r.Node, c.Patch(ctx, in, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

func (r *requestResult) describe(n *v1beta1.Notice) {
	r.Requested, r.Next = "drain requested", fmt.Sprintf("the node is cordoned and its pods leave; `lifeboat watch %s` follows it, `lifeboat uncordon %s` withdraws it", r.Node, r.Node)
	if n.Deadline != nil {
		at := n.Deadline.Time.UTC()
		r.Deadline = &at
		r.Next = "the pods leave by " + at.Format(time.RFC3339) + "; " + r.Next
	}
}

func writing(node string, err error) error {
	if err != nil {
		return fmt.Errorf("writing the request for %s: %w", node, err)
	}
	return nil
}
