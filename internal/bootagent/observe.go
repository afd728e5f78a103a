package bootagent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
)

// Paths below /latest/meta-data (EC2 User Guide, "Instance metadata categories").
const (
	pathInstance = "instance-id"
	pathTarget   = "autoscaling/target-lifecycle-state"
	pathTags     = "tags/instance"
)

// groupTag is Auto Scaling's tag of its instances (Amazon EC2 Auto Scaling User Guide, "Tag Auto
// Scaling groups and instances").
const groupTag = "aws:autoscaling:groupName"

const (
	// quickLook is the interval of metadata reads while it has no target.
	quickLook = 2 * time.Second
	// kubeletEvery is the interval of checks that the kubelet does not run.
	kubeletEvery = 15 * time.Second
	// nodeEvery is the interval of node reads while something waits for the node, and
	// nodeSeldom otherwise.
	nodeEvery, nodeSeldom = 5 * time.Second, time.Minute
	// diskEvery is the interval of checks for progress.
	diskEvery = 10 * time.Second
	// progressBytes is the growth of the disk that counts as progress.
	progressBytes = 8 << 20
)

// instanceFormat matches EC2 instance ids.
var instanceFormat = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// observe reads everything that is due, and returns the time.
func (a *Agent) observe(ctx context.Context) time.Time {
	a.wakeIfSuspended(ctx)
	if a.facts.Boot == "" {
		if id, err := a.o.BootID(); err != nil {
			a.facts.Target.Trouble = "the boot has no id: " + err.Error()
			a.due.target = a.o.Clock.Wall().Add(quickLook)
		} else {
			a.facts.Boot = strings.TrimSpace(id)
		}
	}
	if now := a.o.Clock.Wall(); a.facts.Boot != "" && !now.Before(a.due.target) {
		a.readTarget(ctx)
	}
	a.facts.Gate = a.gateOpen()
	a.readKubelet(ctx)
	a.readNode(ctx)
	a.readDisk()
	return a.o.Clock.Wall()
}

// wakeIfSuspended drops facts that may have changed during a suspension, and reports whether
// there was one: the wall clock advanced, and the monotonic clock did not.
func (a *Agent) wakeIfSuspended(ctx context.Context) bool {
	wall, mono := a.o.Clock.Wall(), a.o.Clock.Monotonic()
	gap := wall.Sub(a.wall) - (mono - a.mono)
	a.wall, a.mono = wall, mono
	if gap.Abs() < jumped {
		return false
	}
	logr.FromContextOrDiscard(ctx).Info("was suspended, or the clock was set: reads everything again", "for", gap.Round(time.Second).String())
	a.metadata, a.cloud, a.due = a.o.Metadata(), nil, schedule{}
	f := &a.facts
	f.Target = Target{Trouble: "it was not read since the machine woke"}
	f.Member, f.State, f.Hooks, f.Node, f.Kubelet = MemberUnknown, State{}, Hooks{}, Node{}, KubeletUnknown
	f.Talk = Talk{Due: wall.Add(a.jitter())}
	// Times that are now in the future would delay actions.
	for _, at := range []*time.Time{&f.Journal.Leg.At, &f.Journal.Leg.Beat, &f.Journal.Gate.At, &f.Progress, &f.Again} {
		if at.After(wall) {
			*at = wall
		}
	}
	return true
}

// readTarget reads the target of the machine.
func (a *Agent) readTarget(ctx context.Context) {
	text, err := a.askTarget(ctx)
	now := a.o.Clock.Wall()
	t := &a.facts.Target
	if err != nil {
		a.failures++
		t.Trouble = explain(err, a.facts.Instance)
		if t.Value == "" {
			t.Since = time.Time{}
		}
		a.due.target = now.Add(min(a.backoff(a.failures), a.vary(a.o.Interval)))
		return
	}
	a.failures = 0
	if !t.Read || t.Value != text || t.Since.IsZero() {
		t.Since = now
	}
	t.Read, t.Value, t.At, t.Trouble = true, text, now, ""
	wait := a.o.Interval
	if text == "" && a.facts.Journal.Leg.Goal != Alone {
		wait = min(wait, quickLook)
	}
	a.due.target = now.Add(a.vary(wait))
}

func (a *Agent) askTarget(ctx context.Context) (string, error) {
	if a.facts.Instance == "" {
		id, found, err := a.metadata.Get(ctx, pathInstance)
		switch id = strings.TrimSpace(id); {
		case err != nil:
			return "", err
		case !found || !instanceFormat.MatchString(id):
			return "", &metadata.ReadError{Reason: metadata.Unexpected, Err: fmt.Errorf("reading instance metadata %s: %.80q is no instance id", pathInstance, id)}
		}
		a.load(ctx, id)
	}
	text, _, err := a.metadata.Get(ctx, pathTarget)
	return strings.TrimSpace(text), err
}

// explain describes an error of metadata, and what to do about it.
func explain(err error, instance string) string {
	var trouble *metadata.ReadError
	if errors.As(err, &trouble) {
		return err.Error() + ": " + metadata.Advice(trouble.Reason, instance)
	}
	return err.Error()
}

// inGroup reads from the instance's tags whether it is in a group. Known is false if metadata
// has no tags.
func (a *Agent) inGroup(ctx context.Context) (in, known bool, err error) {
	list, found, err := a.metadata.Get(ctx, pathTags)
	if err != nil || !found {
		return false, false, err
	}
	for line := range strings.Lines(list) {
		if strings.TrimSpace(line) == groupTag {
			return true, true, nil
		}
	}
	return false, true, nil
}

// readKubelet checks whether the kubelet runs, when that matters: it must be off in the pool,
// and before a wipe.
func (a *Agent) readKubelet(ctx context.Context) {
	j, now := a.facts.Journal, a.o.Clock.Wall()
	goal, _ := aim(a.facts, now)
	matters := goal == Warm || goal == Return || j.Pooled || !j.Wiping.IsZero() || j.Served && !a.facts.Gate
	if !matters || a.facts.Boot == "" {
		a.due.kubelet = time.Time{}
		return
	}
	if a.facts.Kubelet != KubeletUnknown && now.Before(a.due.kubelet) {
		return
	}
	a.due.kubelet = now.Add(a.vary(kubeletEvery))
	a.facts.Kubelet = KubeletOff
	if a.shell(ctx, a.o.Active, askTime) == nil {
		a.facts.Kubelet = KubeletRuns
	}
}

// waitsForNode reports whether something waits for the node to appear, or to be deleted.
func (f Facts) waitsForNode() (come, leave bool) {
	leg, j := f.Journal.Leg, f.Journal
	if leg.Boot != f.Boot {
		return false, false
	}
	return leg.Goal == Serve && f.Gate && j.Gate.Started && (leg.Answered == "" || j.Node == ""),
		leg.Goal == Return && j.Served && !j.NodeGone
}

// readNode reads the machine's node if something waits for it.
func (a *Agent) readNode(ctx context.Context) {
	f, now := &a.facts, a.o.Clock.Wall()
	come, leave := f.waitsForNode()
	if !come && !leave {
		a.due.node = time.Time{}
		return
	}
	if !f.Node.At.IsZero() && now.Before(a.due.node) {
		return
	}
	n := a.o.Node(ctx, f.Instance, f.Journal.Node)
	n.At = a.o.Clock.Wall()
	if n.Name != "" && f.Journal.Node == "" {
		f.Journal.Node, f.Progress = n.Name, n.At
		a.save(ctx)
	}
	f.Node = n
	wait := min(nodeEvery, a.o.Interval)
	if come && (f.Journal.Leg.Answered != "" || n.readySince(f.Journal.Gate.At)) {
		wait = nodeSeldom
	}
	a.due.node = n.At.Add(a.vary(wait))
}

// readDisk checks whether the prepared data grows.
func (a *Agent) readDisk() {
	if len(a.jobs) == 0 || a.o.Used == nil {
		a.due.disk = time.Time{}
		return
	}
	now := a.o.Clock.Wall()
	if now.Before(a.due.disk) {
		return
	}
	a.due.disk = now.Add(diskEvery)
	used, err := a.o.Used()
	if err != nil {
		return // completed stages count instead
	}
	if a.used == 0 || used < a.used {
		a.used = used
	}
	if used >= a.used+progressBytes {
		a.used, a.facts.Progress = used, now
	}
}
