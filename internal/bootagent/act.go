package bootagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

const (
	// askTime is the time limit of commands that query, and commandTime of those that start,
	// stop or wipe: kubeadm join as a start command takes minutes.
	askTime     = 20 * time.Second
	commandTime = 5 * time.Minute
	// stageTime is the time limit of one try of a stage.
	stageTime = time.Hour
	// gateFile is the name of the file that opens the gate.
	gateFile = "gate"
)

// act carries out a step, and reports whether there was an action.
func (a *Agent) act(ctx context.Context, s Step) bool {
	switch s.Do {
	case DoBegin:
		a.begin(ctx, s.Goal)
	case DoPrepare:
		a.startJob(ctx, s.Stage)
	case DoOpen:
		a.open(ctx)
	case DoClose:
		a.shut(ctx)
	case DoWipe:
		a.wipe(ctx)
	case DoCorroborate:
		a.corroborate(ctx)
	case DoDescribe:
		a.describe(ctx)
	case DoHooks:
		a.listHooks(ctx)
	case DoHeartbeat:
		a.heartbeat(ctx, s)
	case DoComplete:
		a.complete(ctx, s)
	case DoSettle:
		a.facts.Journal.Leg.Answered = s.Reason
		a.save(ctx)
	case DoStop:
		a.cancelJobs(func(string) bool { return true })
		return false
	default:
		return false
	}
	return true
}

// begin begins a leg. It cancels what is left of the previous one: its calls, and image pulls
// that the machine need not wait for any more.
func (a *Agent) begin(ctx context.Context, goal Goal) {
	f, now := &a.facts, a.o.Clock.Wall()
	a.cancelJobs(func(key string) bool { return goal == End || isImage(key) && goal != Warm })
	f.Journal.Leg = Leg{Boot: f.Boot, Goal: goal, At: now}
	if goal == Return {
		f.Journal.Pooled = true
	}
	f.State, f.Hooks, f.Node, f.Kubelet = State{}, Hooks{}, Node{}, KubeletUnknown
	f.Talk = Talk{Due: now.Add(a.jitter())}
	f.Progress = now
	a.save(ctx)
}

// open opens the gate and starts the kubelet, if fresh metadata says that the machine must
// serve.
func (a *Agent) open(ctx context.Context) {
	f := &a.facts
	a.readTarget(ctx)
	if goal, _ := aim(*f, a.o.Clock.Wall()); f.Target.Trouble != "" || goal != f.Journal.Leg.Goal {
		return
	}
	j := &f.Journal
	if !f.Gate {
		j.Gate = GateRecord{Boot: f.Boot, At: a.o.Clock.Wall()}
		j.Node, j.NodeGone = "", false
	}
	j.Served, j.Pooled = true, false
	a.save(ctx)
	err := a.o.Gate.Write(gateFile, []byte(f.Boot+"\n"))
	if err == nil {
		err = a.shell(ctx, a.o.Start, commandTime)
	}
	if a.recordCommand(ctx, "starting the kubelet", err) {
		return
	}
	f.Gate, f.Kubelet, f.Progress = true, KubeletRuns, a.o.Clock.Wall()
	f.Node = Node{}
	j.Gate.Started = true
	a.save(ctx)
	logr.FromContextOrDiscard(ctx).Info("opened the gate and started the kubelet")
}

// shut closes the gate and stops the kubelet.
func (a *Agent) shut(ctx context.Context) {
	f := &a.facts
	if f.Journal.Leg.Goal == Return && f.isNodeGone() {
		f.Journal.NodeGone = true
		a.save(ctx)
	}
	err := a.o.Gate.Remove(gateFile)
	if err == nil {
		err = a.shell(ctx, a.o.Stop, commandTime)
	}
	if a.recordCommand(ctx, "stopping the kubelet", err) {
		return
	}
	f.Gate, f.Kubelet = false, KubeletOff
	f.Journal.Gate = GateRecord{}
	a.save(ctx)
	logr.FromContextOrDiscard(ctx).Info("closed the gate and stopped the kubelet")
}

// wipe removes the state of one life in service, and begins the next life.
func (a *Agent) wipe(ctx context.Context) {
	f := &a.facts
	f.Journal.Wiping = a.o.Clock.Wall()
	a.save(ctx)
	var err error
	if a.o.Wipe != "" {
		err = a.shell(ctx, a.o.Wipe, commandTime)
	}
	for _, path := range a.o.WipePaths {
		err = errors.Join(err, a.o.Remove(path))
	}
	if a.recordCommand(ctx, "wiping", err) {
		return
	}
	a.cancelJobs(func(key string) bool { return !isImage(key) })
	f.Journal = f.Journal.reborn()
	a.save(ctx)
	f.Stages = a.o.stages(f.Journal.Stages)
	logr.FromContextOrDiscard(ctx).Info("wiped the state of one life in service", "life", f.Journal.Lives)
}

// recordCommand records the result of a command of the machine, and reports whether it failed.
func (a *Agent) recordCommand(ctx context.Context, doing string, err error) bool {
	f := &a.facts
	if err == nil {
		f.Broken, f.Again = "", time.Time{}
		return false
	}
	if ctx.Err() == nil {
		f.Broken = fmt.Sprintf("%s: %v", doing, err)
		f.Again = a.o.Clock.Wall().Add(a.vary(nodeEvery))
	}
	return true
}

// gateOpen reports whether the gate was opened in this boot. A file of an earlier boot, on a
// persistent file system, does not count and is removed.
func (a *Agent) gateOpen() bool {
	data, err := a.o.Gate.Read(gateFile)
	if err != nil || len(data) == 0 || a.facts.Boot == "" {
		return false
	}
	if string(data) != a.facts.Boot+"\n" {
		_ = a.o.Gate.Remove(gateFile) // the next pass tries again
		return false
	}
	return true
}

// shell runs a command line with a time limit.
func (a *Agent) shell(ctx context.Context, line string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := a.o.Run(ctx, []string{"/bin/sh", "-c", line})
	return err
}
