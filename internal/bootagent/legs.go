package bootagent

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// serve brings the machine into service: it removes the state of an earlier life, prepares, and
// opens the gate. Once the kubelet has reported that the node is Ready, it completes the launch
// hook.
func serve(f Facts, now time.Time) Step {
	if f.Journal.Served && f.Journal.Pooled || !f.Journal.Wiping.IsZero() {
		return clean(f, now, "it was in the warm pool since it last served")
	}
	if f.Journal.Served && f.Journal.Gate.Started && !f.Gate {
		if step, same := sameLife(f, now); !same {
			return step
		}
	}
	if step, prepared := prepare(f, now, false); !prepared {
		return prepareOrExtend(f, step, now)
	}
	if !f.Gate || !f.Journal.Gate.Started {
		return open(f, now)
	}
	if f.Journal.Leg.Goal == Alone {
		return Step{Do: DoWait, Reason: "serves, without an Auto Scaling group"}
	}
	return answer(f, f.Node.readySince(f.Journal.Gate.At), waitsForNode(f), now)
}

// sameLife reports whether a machine was rebooted in service. Otherwise it was in the warm pool, for
// a time too short to be visible in metadata. If that is unknown, sameLife returns true, because the
// restart of a node must not wait for Auto Scaling.
func sameLife(f Facts, now time.Time) (step Step, same bool) {
	const why = "the machine has served in an earlier boot"
	switch {
	case !f.Rules.Answer, f.Journal.Leg.Goal != Serve, f.Talk.problem() != "":
		return Step{}, true
	case f.State.At.IsZero() && now.Before(f.Talk.Due):
		return Step{Do: DoWait, At: f.Talk.Due, Reason: why + ": asks whether it was in the warm pool since"}, false
	case f.State.At.IsZero():
		return Step{Do: DoDescribe, Reason: why + ": asks whether it was in the warm pool since"}, false
	}
	switch f.State.Position.Phase {
	case lifecycle.Joining, lifecycle.Warming, lifecycle.Warm:
		return clean(f, now, why+", and its state is "+f.State.Value), false
	}
	return Step{}, true
}

// open opens the gate, if fresh metadata says that the machine must serve.
func open(f Facts, now time.Time) Step {
	switch {
	case f.Target.Trouble != "" || now.Sub(f.Target.At) > freshTarget:
		return Step{Do: DoAsk, Reason: "is prepared, and opens the gate once instance metadata says again that it must serve: " + f.Target.Trouble}
	case now.Before(f.Again):
		return Step{Do: DoWait, At: f.Again, Reason: "the start command has failed, and is run again: " + f.Broken}
	case f.Journal.Leg.Goal == Alone:
		return Step{Do: DoOpen, Reason: "the machine is in no Auto Scaling group, so the kubelet need not wait"}
	}
	return Step{Do: DoOpen, Reason: "its group sends the machine into service"}
}

func waitsForNode(f Facts) string {
	n := f.Node
	switch {
	case n.At.IsZero():
		return "the node was not read yet"
	case n.Trouble != "":
		return "the node cannot be read: " + n.Trouble
	case n.Healthz:
		return "the kubelet's health check does not say ok"
	case n.Name == "":
		return "the kubelet has not registered its node yet"
	case n.Deleting:
		return "the node " + n.Name + " is being deleted"
	case !n.Ready:
		return "the node " + n.Name + " is not Ready"
	}
	return "the node " + n.Name + " is Ready from before the gate opened: waits for the kubelet's next heartbeat"
}

// warm prepares the machine for the pool. The kubelet must stay off; if something else starts
// it, it is stopped.
func warm(f Facts, now time.Time) Step {
	if f.Gate || f.Kubelet == KubeletRuns {
		return shut(f, now, "the machine is warming, and the kubelet must not run")
	}
	if !f.Journal.Wiping.IsZero() {
		return clean(f, now, "wiping was cut short")
	}
	step, prepared := prepare(f, now, true)
	if !prepared {
		return prepareOrExtend(f, step, now)
	}
	return answer(f, true, "", now)
}

// returnToPool returns a machine from service to the pool. Its kubelet runs until its pods have been
// moved, which the deletion of its node shows.
func returnToPool(f Facts, now time.Time) Step {
	if !f.Journal.Served && f.Journal.Wiping.IsZero() {
		if !f.Journal.NodeGone {
			return Step{Do: DoWait, Reason: "is back in the warm pool, or will be soon; the deletion of its node was not seen, so the controller answers"}
		}
		return answer(f, true, "", now)
	}
	switch {
	case !f.Gate && f.Kubelet == KubeletOff, f.Journal.NodeGone, !f.Journal.Wiping.IsZero():
		return clean(f, now, "it has served, and goes back into the warm pool")
	case f.isNodeGone():
		return shut(f, now, "its pods were moved and its node deleted: it goes back into the warm pool")
	case f.State.past():
		return shut(f, now, "nothing holds the machine any more (state "+f.State.Value+"): it goes back into the warm pool")
	}
	return waitForPods(f, now)
}

// waitForPods reads the state from time to time, because something else may release the machine.
func waitForPods(f Facts, now time.Time) Step {
	const why = "goes back into the warm pool: the kubelet runs until the pods are moved and the node is deleted"
	switch {
	case !f.Rules.Answer:
		return Step{Do: DoWait, Reason: why}
	case now.Before(f.Talk.Due):
		return Step{Do: DoWait, At: f.Talk.Due, Reason: why}
	case f.State.At.IsZero():
		return look(f, f.Talk.Look, why, now)
	}
	return look(f, f.State.At.Add(slowLook), why, now)
}

// clean wipes with the gate closed.
func clean(f Facts, now time.Time, why string) Step {
	if f.Gate || f.Kubelet == KubeletRuns {
		return shut(f, now, why)
	}
	if now.Before(f.Again) {
		return Step{Do: DoWait, At: f.Again, Reason: "wiping has failed, and is done again: " + f.Broken}
	}
	return Step{Do: DoWipe, Reason: why + ": what belongs to one life is removed"}
}

func shut(f Facts, now time.Time, why string) Step {
	if now.Before(f.Again) {
		return Step{Do: DoWait, At: f.Again, Reason: "the stop command has failed, and is run again: " + f.Broken}
	}
	return Step{Do: DoClose, Reason: why}
}

// prepare goes through the stages: commands one after the other, then images concurrently, if
// they are needed. Prepared is true when there is nothing left to wait for. An image that cannot
// be pulled is skipped: the kubelet pulls it when it is needed.
func prepare(f Facts, now time.Time, images bool) (step Step, prepared bool) {
	over, running := 0, 0
	var next *StageFact
	wait := Step{Do: DoWait}
	for i := range f.Stages {
		s := &f.Stages[i]
		switch {
		case s.over(images, f.Rules.Tries):
			over++
			continue
		case s.Running:
			running++
		case now.Before(s.Again):
			wait = sooner(wait, s.Again)
		case next == nil:
			next = s
		}
		if !s.Image {
			break // the stages after a command depend on it
		}
	}
	if over == len(f.Stages) {
		return Step{}, true
	}
	wait.Reason = fmt.Sprintf("prepares: %d of %d stages are over%s", over, len(f.Stages), troubles(f.Stages))
	if next == nil || next.Image && running >= max(1, f.Rules.Parallel) {
		return wait, false
	}
	return Step{Do: DoPrepare, Stage: next.Key, Reason: wait.Reason}, false
}

// over reports whether a stage need not be waited for.
func (s StageFact) over(images bool, tries int) bool {
	return s.Done || s.Image && (!images || s.Tries >= tries && !s.Running)
}

func sooner(s Step, at time.Time) Step {
	if s.At.IsZero() || at.Before(s.At) {
		s.At = at
	}
	return s
}

func troubles(stages []StageFact) string {
	for _, s := range stages {
		if !s.Done && s.Trouble != "" {
			return fmt.Sprintf("; %s has failed %d times: %s", s.Key, s.Tries, s.Trouble)
		}
	}
	return ""
}

// failed is a command that has used up its tries, or nil.
func failed(f Facts) *StageFact {
	for i := range f.Stages {
		if s := &f.Stages[i]; !s.Image && !s.Done && !s.Running && s.Tries >= f.Rules.Tries {
			return s
		}
	}
	return nil
}

// prepareOrExtend returns the action of the preparation, or heartbeats meanwhile.
func prepareOrExtend(f Facts, step Step, now time.Time) Step {
	if step.Do != DoWait || f.Journal.Leg.Goal == Alone {
		return step
	}
	if bad := failed(f); bad != nil && f.Rules.Abandon {
		verdict := answerWith(f, cloud.Abandon, true, "abandons the launch", now)
		verdict.Reason = fmt.Sprintf("%s has failed %d times (%s): %s", bad.Key, bad.Tries, bad.Trouble, verdict.Reason)
		return sooner(verdict, step.At)
	}
	answered := answer(f, false, step.Reason, now)
	if answered.Do == DoWait && !step.At.IsZero() {
		return sooner(answered, step.At)
	}
	return answered
}
