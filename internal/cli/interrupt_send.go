package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// rawMessage is the body of a message, which is JSON itself.
type rawMessage = json.RawMessage

// drilling is a drill that is ready to be sent.
type drilling struct {
	flags   interruptFlags
	cloud   cloud
	targets []drill.Target
	// queueURL and notices are set for --via queue. The fields of a notice that
	// depend on the time are filled in when it is sent.
	queueURL string
	drill    string
	notices  []drill.Notice
	// experiment is set for --via fis.
	experiment drill.Experiment
}

// prepare makes all checks that are possible before anything is sent.
func (s *session) prepare(ctx context.Context, f interruptFlags, c cloud, targets []drill.Target) (*drilling, error) {
	it := &drilling{flags: f, cloud: c, targets: targets}
	if f.via == viaFIS {
		return it, s.prepareFIS(ctx, it)
	}
	if f.of.Name == notice.KindCapacityBlockExpiration {
		if err := s.addWholeBlocks(ctx, it); err != nil {
			return nil, err
		}
	}
	it.drill = drill.NewID()
	for _, t := range it.targets {
		if f.of.Name == notice.KindCapacityBlockExpiration && it.covers(t.Reservation) {
			continue // one message covers the whole block
		}
		it.notices = append(it.notices, drill.Notice{
			Place: c.place, Kind: f.of.Name, Target: t, Drill: it.drill,
			Action: f.action, State: f.state, Code: f.code, Group: f.group,
		})
	}
	if f.cancel {
		if err := s.continueDrills(ctx, it); err != nil {
			return nil, err
		}
	}
	var err error
	if it.queueURL, err = s.queue(ctx, f.queueURL, c); err != nil {
		return nil, err
	}
	return it, nil
}

func (it *drilling) covers(block string) bool {
	return slices.ContainsFunc(it.notices, func(n drill.Notice) bool { return n.Target.Reservation == block })
}

// addWholeBlocks adds all instances that run in the targets' Capacity Blocks.
func (s *session) addWholeBlocks(ctx context.Context, it *drilling) error {
	inside, err := drill.InBlocks(ctx, it.cloud.instances, it.targets)
	if err != nil {
		return awsError{err}
	}
	nodes, err := s.nodesOf(ctx)
	if err != nil {
		return err
	}
	for i := range inside {
		if node, err := findNode(nodes, inside[i].InstanceID); err == nil {
			inside[i].Node = node.Name
		}
	}
	it.targets = inside
	return nil
}

func (s *session) prepareFIS(ctx context.Context, it *drilling) error {
	f, c := it.flags, it.cloud
	if f.role == "" && !c.emulated {
		return usageErrorf("FIS needs a role to interrupt instances: add --fis-role-arn with the ARN that `%s aws iam --cluster NAME --role fis --create` prints; "+
			"or use --via queue, which reclaims nothing", s.name)
	}
	if err := drill.CheckSpot(ctx, c.instances, it.targets); err != nil {
		return awsError{err}
	}
	it.experiment = drill.Experiment{
		Place: c.place, RoleARN: cmp.Or(f.role, "arn:aws:iam::"+c.place.Account+":role/lifeboat-sandbox"),
		Delay: f.delay, Poll: 3 * time.Second, Recommendation: it.isRecommendation(),
	}
	if c.emulated {
		it.experiment.Poll = 250 * time.Millisecond
	}
	return nil
}

// isRecommendation reports whether the drill waits for FIS's rebalance
// recommendation instead of the notice.
func (it *drilling) isRecommendation() bool {
	return it.flags.via == viaFIS && it.flags.of.Name == notice.KindRebalanceRecommendation
}

func (it *drilling) report() interrupted {
	return interrupted{
		Kind: it.flags.of.Name, Via: it.flags.via, Sandbox: it.cloud.emulated, Place: it.cloud.place,
		Targets: it.targets, Drill: it.drill,
	}
}

// at fills in the fields that depend on the time.
func (it *drilling) at(n drill.Notice, now time.Time) drill.Notice {
	n.Time, n.ID = now, drill.NewID()
	if n.Begins.IsZero() && it.flags.lead > 0 {
		n.Begins = now.Add(it.flags.lead)
	}
	if it.flags.of.Accepts(drill.OptionIn) && n.Begins.IsZero() {
		n.Begins = now // --in 0s
	}
	return n
}

// send sends the drill and records what was sent.
func (it *drilling) send(ctx context.Context, s *session, progress *terminal.Progress, done *interrupted) error {
	if it.flags.via == viaFIS {
		it.showExperiment(s, progress)
		ids, err := it.experiment.Run(ctx, it.cloud.fis, it.targets)
		done.Experiments = ids
		if err != nil {
			return awsError{err}
		}
		return nil
	}
	if err := s.permit(ctx, it); err != nil {
		return err
	}
	if f := it.flags; f.delay > 0 {
		progress.Step("sending the notice in %s", terminal.Duration(f.delay))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.delay):
		}
	}
	for _, n := range it.notices {
		progress.Step("writing the notice about %s into %s", n.Target, it.queueURL)
		id, err := it.at(n, s.now()).Send(ctx, it.cloud.queues, it.queueURL)
		if err != nil {
			return awsError{err}
		}
		done.Messages = append(done.Messages, id)
	}
	return nil
}

func (it *drilling) showExperiment(s *session, progress *terminal.Progress) {
	it.experiment.Progress = func(text string) { progress.Step("%s", text) }
	it.experiment.Warn = func(text string) {
		progress.Print(s.err, s.err.Paint(terminal.Warn, "warning:")+" "+text+"\n")
	}
}

// stopPending stops the experiments whose notice is not sent yet when the user
// presses Ctrl-C.
func (it *drilling) stopPending(ctx context.Context, s *session, progress *terminal.Progress, ids []string) {
	if it.isRecommendation() && ctx.Err() != nil {
		it.showExperiment(s, progress)
		it.experiment.Stop(ctx, it.cloud.fis, ids)
	}
}

// show prints what would be sent.
func (s *session) show(it *drilling) error {
	would := it.report()
	would.DryRun = true
	for _, n := range it.notices {
		body, err := it.at(n, s.now()).Body()
		if err != nil {
			return err
		}
		would.Bodies = append(would.Bodies, rawMessage(body))
	}
	if it.flags.via == viaFIS {
		would.Templates = it.experiment.Templates(it.targets)
	}
	if s.isJSON() {
		return s.writeJSON(would)
	}
	for _, t := range would.Templates {
		s.err.Printf("would create and start this experiment template (aws fis create-experiment-template --cli-input-json):\n")
		if err := s.writeJSON(t); err != nil {
			return err
		}
	}
	for _, body := range would.Bodies {
		s.err.Printf("would send this message to %s:\n", it.queueURL)
		if err := s.writeJSON(body); err != nil {
			return err
		}
	}
	return nil
}

// queue returns the URL of the queue to write into.
func (s *session) queue(ctx context.Context, given string, c cloud) (string, error) {
	if given != "" {
		return given, nil
	}
	if c.queueURL != "" {
		return c.queueURL, nil
	}
	k8s, err := s.connect(ctx)
	if err != nil {
		return "", fmt.Errorf("finding the name of Lifeboat's queue (--queue-url sets it): %w", err)
	}
	url, err := drill.FindQueue(ctx, c.queues, "lifeboat-"+strings.TrimPrefix(k8s.name, "lifeboat-"))
	if err != nil {
		return "", awsError{err}
	}
	return url, nil
}
