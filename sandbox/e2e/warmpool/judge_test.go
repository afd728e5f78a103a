package warmpool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
)

// judge watches a world and records faults.
type judge struct {
	w      *world
	groups []group

	mu     sync.Mutex
	faults []fault
	read   int // number of state changes that were checked
}

// fault is a forbidden event.
type fault struct {
	kind string
	at   time.Time
	text string
}

// The kinds of fault.
const (
	tooEarly  = "in service before it is set up and Ready"
	neverSet  = "in service, and never set up"
	takenDown = "taken down while healthy"
	replaced  = "taken down before it was Ready"
	joined    = "joined while warming"
	unsettled = "not as asked for in the end"
)

func (f fault) String() string { return f.at.Format(time.TimeOnly) + " " + f.kind + ": " + f.text }

// fault records a fault once.
func (j *judge) fault(kind string, at time.Time, format string, args ...any) {
	f := fault{kind, at, fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(j.faults, func(o fault) bool { return o.kind == f.kind && o.text == f.text }) {
		j.faults = append(j.faults, f)
	}
}

// look checks the state changes since its last call, and the current state.
func (j *judge) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	trace := j.w.cloud.States.AutoScaling.Trace()
	for _, c := range trace[j.read:] {
		j.change(c)
	}
	j.read = len(trace)
	j.nodes(false, false)
	for _, m := range j.w.cloud.States.AutoScaling.Members() {
		if strings.HasPrefix(string(m.State), "Warmed:") && j.w.machine(m.InstanceID).hasKubelet() {
			j.fault(joined, time.Now(), "%s of %s runs its kubelet, %s", m.InstanceID, m.Group, m.State)
		}
	}
}

func (j *judge) change(c autoscaling.Change) {
	m := j.w.machine(c.InstanceID)
	switch {
	case c.To == autoscaling.InService && !m.isReadyAt(c.Time):
		j.fault(tooEarly, c.Time, "%s of %s", c.InstanceID, c.Group)
	case c.To == autoscaling.Terminating || c.To == autoscaling.WarmedTerminating:
		// This scenario never scales in, and no machine is broken.
		kind := replaced
		if m.isReadyAt(c.Time) {
			kind = takenDown
		}
		j.fault(kind, c.Time, "%s of %s out of %s: %s", c.InstanceID, c.Group, c.From, c.Cause)
	}
}

// tainted reports whether a node still has a taint that keeps pods off.
func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1beta1.TaintNotInService })
}

// nodes checks that pods reach no node before its instance is in service, and, with a controller,
// every node after that.
func (j *judge) nodes(controlled, last bool) {
	var list corev1.NodeList
	if err := j.w.kube.List(context.Background(), &list); err != nil {
		return
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
		id := strings.TrimPrefix(list.Items[i].Name, "node-of-")
		m, _ := j.w.cloud.States.AutoScaling.Member(id)
		switch open := !tainted(&list.Items[i]); {
		case open && m.State != autoscaling.InService:
			j.fault(tooEarly, time.Now(), "%s is open for pods, %s", id, m.State)
		case !open && last && controlled && m.State == autoscaling.InService:
			j.fault(unsettled, time.Now(), "%s is in service, and still keeps pods off", id)
		}
	}
	for _, m := range j.w.cloud.States.AutoScaling.Members() {
		if name := j.w.machine(m.InstanceID).nodeName(); last && m.State == autoscaling.InService && !there[name] {
			j.fault(unsettled, time.Now(), "%s is in service, and has no node", m.InstanceID)
		}
	}
}

// end checks the final state.
func (j *judge) end(controlled bool) []fault {
	j.look()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nodes(controlled, true)
	inService, warm := map[string]int32{}, map[string]int32{}
	for _, m := range j.w.cloud.States.AutoScaling.Members() {
		switch {
		case m.State == autoscaling.WarmedStopped:
			warm[m.Group]++
		case m.State == autoscaling.InService && !j.w.machine(m.InstanceID).disk.isDone():
			j.fault(neverSet, time.Now(), "%s of %s", m.InstanceID, m.Group)
		case m.State == autoscaling.InService:
			inService[m.Group]++
		}
	}
	for _, g := range j.groups {
		if inService[g.name] != g.wanted() || warm[g.name] < g.warm {
			j.fault(unsettled, time.Now(), "%s has %d in service and %d warm, and %d and %d were asked for",
				g.name, inService[g.name], warm[g.name], g.wanted(), g.warm)
		}
	}
	return j.faults
}
