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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

const (
	verbApprove = "approve"
	verbHold    = "hold"
	verbRelease = "release"

	// longestNote is what the record takes, in characters.
	longestNote = 512
)

// sayFlags are those of what people say about an interruption.
type sayFlags struct {
	note      string
	inAdvance bool
	lasts     time.Duration
}

func newApprove(s *session) *cobra.Command {
	var f sayFlags
	cmd := s.newSay(verbApprove, &f, &cobra.Command{
		Short: "Agree to what policy wants a person to agree to",
		Long: `Agree to what waits for a person: an action whose policy requires approval, or a
drain that a failed hook holds. Who said so, when and why is written into the
Interruption's spec.approval; the name is the one that the cluster knows.

An approval is about the notice that rules. Where another comes to rule, such as
a spot reclaim on a node that is to be rebooted, it does not count for that one.`,
		Example: `  lifeboat approve ip-10-0-1-5.ec2.internal --note "replica caught up"
  lifeboat approve ip-10-0-1-5.ec2.internal ip-10-0-1-6.ec2.internal
  lifeboat approve ip-10-0-1-5.ec2.internal --in-advance`,
	})
	cmd.Flags().BoolVar(&f.inAdvance, "in-advance", false, "record it although nothing waits for approval; it counts once something about the same notice does")
	return cmd
}

func newHold(s *session) *cobra.Command {
	var f sayFlags
	cmd := s.newSay(verbHold, &f, &cobra.Command{
		Short: "Have no pod of a node moved yet",
		Long: `Hold a drain: no pod is asked to leave until it is released or --for is over.
Pods that were asked already go on leaving. A hold does not keep a pod past its
last call before a hard deadline: what the cloud takes is gone in any case, and
its preStop hook still runs.

Who said so, when and why is written into the Interruption's spec.hold.`,
		Example: `  lifeboat hold ip-10-0-1-5.ec2.internal --for 2h --note "backup runs until 14:00"
  lifeboat hold ip-10-0-1-5.ec2.internal`,
	})
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "when it ends by itself, such as 2h (default: when it is released)")
	return cmd
}

func newRelease(s *session) *cobra.Command {
	var f sayFlags
	return s.newSay(verbRelease, &f, &cobra.Command{
		Short: "End a hold",
		Long: `End a hold: the drain goes on from where it is. Who said so, when and why is
written into the Interruption's spec.released.`,
		Example: `  lifeboat release ip-10-0-1-5.ec2.internal --note "backup is done"`,
	})
}

// newSay completes a command by which people say something.
func (s *session) newSay(verb string, f *sayFlags, cmd *cobra.Command) *cobra.Command {
	cmd.Use = verb + " NODE|INSTANCE..."
	cmd.Args = arguments(1, -1, "at least one node or instance")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len([]rune(f.note)) > longestNote:
			return usageErrorf("--note has %d characters: write at most %d", len([]rune(f.note)), longestNote)
		case cmd.Flags().Changed("for") && f.lasts <= 0:
			return usageErrorf("--for %s: write how long, such as 2h; leave it out to hold until it is released", f.lasts)
		}
		return s.say(cmd.Context(), verb, *f, args)
	}
	cmd.Flags().StringVar(&f.note, "note", "", "why, for whoever reads it later")
	return cmd
}

// say records it of every node named. What cannot be said of one does not keep
// it from being said of the others.
func (s *session) say(ctx context.Context, verb string, f sayFlags, args []string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	by, err := c.whoami(ctx)
	if err != nil {
		return err
	}
	var all []saying
	var failures []error
	for _, arg := range args {
		done, err := s.sayOf(ctx, c, sentence{verb: verb, by: by, sayFlags: f}, arg)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		all = append(all, done)
		if !s.isJSON() {
			done.write(s.out)
		}
	}
	if s.isJSON() && len(all) > 0 {
		if err := s.writeJSON(all); err != nil {
			return err
		}
	}
	for _, err := range failures[:max(len(failures)-1, 0)] {
		s.err.Printf("%s %v\n", s.err.Paint(terminal.Bad, "error:"), err)
	}
	if len(failures) > 0 {
		return failures[len(failures)-1]
	}
	return nil
}

// whoami asks the cluster for the name of whoever asks, so that nobody can say
// it wrong; the chart's admission policy holds it against the request.
func (c cluster) whoami(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return "", fmt.Errorf("asking the cluster who you are: %w", err)
	}
	if name := review.Status.UserInfo.Username; name != "" {
		return name, nil
	}
	return "", fmt.Errorf("asking the cluster who you are: it does not say")
}

// sentence is what somebody says.
type sentence struct {
	verb, by string
	sayFlags
}

// sayOf writes it into the record. Where somebody else writes at the same time,
// it is considered anew.
func (s *session) sayOf(ctx context.Context, c cluster, it sentence, arg string) (saying, error) {
	var done saying
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		w, err := s.observe(ctx, c, supposition{}, arg)
		if err != nil {
			return err
		}
		if w.record == nil {
			return fmt.Errorf("%s has no interruption under way, so there is nothing to %s; `%s watch --once` lists what happened, `%s explain %s` tells what would", w.name(), it.verb, s.name, s.name, w.name())
		}
		decision, ok := policy.Decide(w.policy)
		if !ok || decision.Withdrawn {
			return fmt.Errorf("nothing is to be done about %s any more: its notices were taken back, or are dealt with", w.name())
		}
		before := w.record.DeepCopy()
		if err := it.write(s, w, decision); err != nil {
			return err
		}
		patch, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := c.Patch(patch, w.record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("writing into interruption %s: %w", w.record.Name, err)
		}
		done = it.done(w, decision)
		return nil
	})
	return done, err
}

// write puts it into the record, or says why it makes no sense.
func (it sentence) write(s *session, w *observed, d policy.Decision) error {
	say := &v1alpha1.Say{By: it.by, Time: metav1.NewMicroTime(w.now), About: d.About, Note: it.note}
	spec := &w.record.Spec
	switch it.verb {
	case verbApprove:
		if err := it.checkApproval(s, w, d); err != nil {
			return err
		}
		spec.Approval = say
	case verbHold:
		if w.record.Status.Phase == v1alpha1.PhaseDrained {
			return fmt.Errorf("the pods of %s have left it already: there is nothing left to hold", w.name())
		}
		if it.lasts > 0 {
			until := metav1.NewTime(w.now.Add(it.lasts))
			say.Until = &until
		}
		spec.Hold = say
	case verbRelease:
		if spec.Hold == nil {
			return fmt.Errorf("nobody holds %s, so there is nothing to release", w.name())
		}
		spec.Hold, spec.Released = nil, say
	}
	return nil
}

func (it sentence) checkApproval(s *session, w *observed, d policy.Decision) error {
	waits := d.AwaitsApproval && w.policy.Begun.IsZero()
	if waits || it.inAdvance || w.failedHook(d) != nil {
		return nil
	}
	if say := w.policy.Approval; say != nil && d.Approved {
		return fmt.Errorf("%s is approved already, by %s", w.name(), said(say, w.now))
	}
	return fmt.Errorf("nothing about %s waits for approval (%s); to record one all the same, which counts once something about %s does, add --in-advance; `%s explain %s` tells more",
		w.name(), d.Message, d.About, s.name, w.name())
}
