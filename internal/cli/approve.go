package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	verbApprove = "approve"
	verbHold    = "hold"
	verbRelease = "release"

	// maxNoteLength is the CRD's limit for a note, in characters.
	maxNoteLength = 512
)

// statementFlags are the flags of approve, hold and release.
type statementFlags struct {
	selection

	note       string
	preApprove bool
	lasts      time.Duration
}

func newApprove(s *session) *cobra.Command {
	var f statementFlags
	cmd := s.newStatement(verbApprove, &f, &cobra.Command{
		Short: "Approve a pending interruption",
		Long: `Approve an action whose policy requires approval, or a drain that a failed hook
holds. Your name, the time and the note are written to the Interruption's
spec.approval. The name is your user name in the cluster.

An approval applies to the notice that rules. If another notice rules later, such
as a spot interruption on a node with a planned reboot, approve it separately.`,
		Example: `  lifeboat approve ip-10-0-1-5.ec2.internal --note "replica caught up"
  lifeboat approve ip-10-0-1-5.ec2.internal ip-10-0-1-6.ec2.internal
  lifeboat approve -l pool=web
  lifeboat approve --policy databases
  lifeboat approve --all-waiting --note "maintenance of Sunday"
  lifeboat approve ip-10-0-1-5.ec2.internal --pre-approve`,
	})
	cmd.Flags().StringVar(&f.policy, "policy", "", "approve everything that waits because of this policy")
	cmd.Flags().BoolVar(&f.allWaiting, "all-waiting", false, "approve everything that waits for an approval")
	cmd.Flags().BoolVar(&f.preApprove, "pre-approve", false, "record the approval although nothing waits for it; it applies when an action for the same notice waits")
	return cmd
}

func newHold(s *session) *cobra.Command {
	var f statementFlags
	cmd := s.newStatement(verbHold, &f, &cobra.Command{
		Short: "Put a node's drain on hold",
		Long: `Hold a drain: no more pods are evicted until the hold is released or --for has
passed. Pods that are already terminating continue. A hold does not keep a pod
past its last call before a hard deadline: the cloud removes the instance anyway,
and the pod's preStop hook still runs.

Your name, the time and the note are written to the Interruption's spec.hold.`,
		Example: `  lifeboat hold ip-10-0-1-5.ec2.internal --for 2h --note "backup runs until 14:00"
  lifeboat hold ip-10-0-1-5.ec2.internal`,
	})
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "time until the hold expires, such as 2h (default: no expiry)")
	return cmd
}

func newRelease(s *session) *cobra.Command {
	var f statementFlags
	return s.newStatement(verbRelease, &f, &cobra.Command{
		Short: "End a hold",
		Long: `End a hold: the drain continues. Your name, the time and the note are written to
the Interruption's spec.released.`,
		Example: `  lifeboat release ip-10-0-1-5.ec2.internal --note "backup is done"`,
	})
}

// newStatement completes the command of a verb.
func (s *session) newStatement(verb string, f *statementFlags, cmd *cobra.Command) *cobra.Command {
	cmd.Use = verb + " NODE|INSTANCE..."
	command.Outputs(cmd, command.OutputText, command.OutputJSON, command.OutputName)
	f.register(cmd)
	cmd.Args = f.check
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len([]rune(f.note)) > maxNoteLength:
			return usageErrorf("--note has %d characters: the limit is %d", len([]rune(f.note)), maxNoteLength)
		case cmd.Flags().Changed("for") && f.lasts <= 0:
			return usageErrorf("invalid --for %s: write a duration such as 2h, or remove it to hold until a release", f.lasts)
		}
		return s.writeStatements(cmd.Context(), verb, *f, args)
	}
	cmd.Flags().StringVar(&f.note, "note", "", "reason, for people who read it later")
	return cmd
}

// writeStatements writes the statement for every node. A failure for one does not affect the others.
func (s *session) writeStatements(ctx context.Context, verb string, f statementFlags, args []string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	by, err := c.whoami(ctx)
	if err != nil {
		return err
	}
	if f.isSet() {
		if args, err = f.interruptionsOf(ctx, c); err != nil {
			return err
		}
	}
	var all []statementResult
	var failures []error
	for _, arg := range args {
		done, err := s.writeStatement(ctx, c, statement{verb: verb, by: by, statementFlags: f}, arg)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		all = append(all, done)
		switch s.flags.Output {
		case command.OutputText:
			done.print(s.out)
		case command.OutputName:
			s.out.Printf("interruption.%s/%s\n", v1beta1.GroupVersion.Group, done.Interruption)
		}
	}
	if s.isJSON() && len(all) > 0 {
		if err := s.writeJSON(all); err != nil {
			return err
		}
	}
	return s.reportAllButLast(failures)
}

// reportAllButLast prints errors, except the last one, which it returns for the caller to report.
func (s *session) reportAllButLast(failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	last := len(failures) - 1
	for _, err := range failures[:last] {
		s.err.Printf("%s %v\n", s.err.Paint(terminal.Bad, "error:"), err)
	}
	return failures[last]
}

// whoami returns the user name that the cluster has for this client. The chart's admission
// policy rejects a statement with another name.
func (c cluster) whoami(ctx context.Context) (string, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return "", fmt.Errorf("reading your user name from the cluster: %w", err)
	}
	if name := review.Status.UserInfo.Username; name != "" {
		return name, nil
	}
	return "", fmt.Errorf("reading your user name from the cluster: the answer has no name")
}

// statement is what a person says about an interruption.
type statement struct {
	verb, by string
	statementFlags
}

// writeStatement writes the statement to the record of one node. After a conflict it checks again
// whether the statement still makes sense.
func (s *session) writeStatement(ctx context.Context, c cluster, it statement, arg string) (statementResult, error) {
	var done statementResult
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		w, err := s.observe(ctx, c, whatIf{}, arg)
		if err != nil {
			return err
		}
		if w.record == nil {
			return fmt.Errorf("%s has no interruption in progress, so there is nothing to %s; `%s watch --once` lists past events, `%s explain %s` shows what would happen", w.name(), it.verb, s.name, s.name, w.name())
		}
		decision, ok := policy.Decide(w.policy)
		if !ok || decision.Withdrawn {
			return fmt.Errorf("there is nothing left to do for %s: its notices are withdrawn or handled", w.name())
		}
		before := w.record.DeepCopy()
		if err := it.apply(s, w, decision); err != nil {
			return err
		}
		patch, cancel := c.limit(ctx)
		defer cancel()
		if err := c.Patch(patch, w.record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("writing to interruption %s: %w", w.record.Name, err)
		}
		done = it.done(w, decision)
		return nil
	})
	return done, err
}

// apply changes the record, or returns why the statement makes no sense.
func (it statement) apply(s *session, w *observed, d policy.Decision) error {
	at := statementTime(w.record, w.now)
	say := &v1beta1.UserAction{By: it.by, Time: metav1.NewMicroTime(at), About: d.About, Note: it.note}
	spec := &w.record.Spec
	switch it.verb {
	case verbApprove:
		if err := it.checkApproval(s, w, d); err != nil {
			return err
		}
		spec.Approval = say
	case verbHold:
		if w.record.Status.Phase == v1beta1.PhaseDrained {
			return fmt.Errorf("the pods of %s have left already, so there is nothing to hold", w.name())
		}
		if it.lasts > 0 {
			until := metav1.NewTime(at.Add(it.lasts))
			say.Until = &until
		}
		spec.Hold = say
	case verbRelease:
		if spec.Hold == nil {
			return fmt.Errorf("%s is not held, so there is nothing to release", w.name())
		}
		spec.Hold, spec.Released = nil, say
	}
	return nil
}

// statementTime returns the time of a statement: now, but after everything that the
// statement must follow for the controller to honour it. The controller's clock wrote those
// times, and the clock here can be behind it.
func statementTime(in *v1beta1.Interruption, now time.Time) time.Time {
	after := notice.Completed(in.Status.History)
	for i := range record.Drain(&in.Status).Hooks {
		if done := record.Drain(&in.Status).Hooks[i].CompletionTime; done != nil && done.After(after) {
			after = done.Time
		}
	}
	if now.After(after) {
		return now
	}
	return after.Add(time.Microsecond)
}

func (it statement) checkApproval(s *session, w *observed, d policy.Decision) error {
	waits := d.AwaitsApproval && d.Begun.IsZero()
	if waits || it.preApprove || w.failedHook(d) != nil {
		return nil
	}
	if say := w.policy.Approval; say != nil && d.Approved {
		return fmt.Errorf("%s is already approved by %s", w.name(), statementText(say, w.now))
	}
	return fmt.Errorf("nothing about %s waits for approval (%s); to approve %s before that, add --pre-approve; `%s explain %s` shows more",
		w.name(), d.Message, d.About, s.name, w.name())
}
