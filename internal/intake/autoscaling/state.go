package autoscaling

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// instanceFormat is what EC2 calls instances.
var instanceFormat = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// fate is what a lifecycle state means for the instance.
type fate int

const (
	lives   fate = iota // nothing, or nothing that is known
	serves              // in service: what was said of its end is taken back
	doomed              // it will go, no one knows when
	waits               // it will go once its hooks are answered
	departs             // it goes now
	warms               // on its way into the warm pool, launched or back from service
)

// fateOf reads a lifecycle state (EC2 Auto Scaling User Guide, "Amazon EC2 Auto
// Scaling instance lifecycle"). The list of states is open. What is warmed, in
// standby, detached or has its root volume replaced lives, whatever comes after
// the colon; of states that are not known only those of terminating count. What is
// on its way into the warm pool may come from service.
func fateOf(state string) fate {
	switch state = strings.TrimSpace(state); state {
	case string(types.LifecycleStateInService):
		return serves
	case string(types.LifecycleStateTerminatingWait):
		return waits
	case string(types.LifecycleStateTerminatingProceed), string(types.LifecycleStateTerminated):
		return departs
	case string(types.LifecycleStateWarmedPending), string(types.LifecycleStateWarmedPendingWait), string(types.LifecycleStateWarmedPendingProceed):
		return warms
	}
	if state == string(types.LifecycleStateTerminating) || strings.HasPrefix(state, string(types.LifecycleStateTerminating)+":") {
		return doomed // also Terminating:Retained: a hook gave up, and somebody has to terminate it
	}
	return lives
}

// patience is how long the group waits at least for its terminate hooks, or
// zero where there are none: as long as the most impatient of them does without
// an answer or a heartbeat (EC2 Auto Scaling API Reference, HeartbeatTimeout).
func patience(hooks []groupwatch.Hook) time.Duration {
	var least time.Duration
	for _, h := range hooks {
		if h.Terminating && h.Timeout > 0 && (least == 0 || h.Timeout < least) {
			least = h.Timeout
		}
	}
	return least
}

// member is an instance as its group lists it.
type member struct {
	group, instance, state string
	// served tells that it was in service.
	served bool
	// turn tells this time from those before, where group and state do not.
	turn string
}

func (m member) subject() string { return notice.Cut(m.group+"/"+m.instance, 512) }

// instanceState is the state in EC2 of an instance that departs.
func (m member) instanceState() string {
	if m.state == string(types.LifecycleStateTerminated) {
		return notice.StateTerminated
	}
	return notice.StateShuttingDown
}

// read makes a notice of it, or reports false where there is none. That it
// serves is a notice that takes back. It waits for its hooks from now on for
// the time given; zero is not known.
func (m member) read(now time.Time, wait time.Duration) (notice.Notice, bool) {
	f := fateOf(m.state)
	if f == lives || f == warms && !m.served || m.group == "" || !instanceFormat.MatchString(m.instance) {
		return notice.Notice{}, false
	}
	n := notice.Notice{
		Notice: v1alpha1.Notice{
			Kind: notice.KindAutoScalingTermination, Source: Name, Subject: m.subject(), EventTypeCode: notice.Cut(m.state, 128),
			InstanceAction: notice.ActionTerminate,
			Hook:           &v1alpha1.HookFiring{Group: notice.Cut(m.group, 255)},
			Description:    fmt.Sprintf("its Auto Scaling group %s terminates the instance (%s)", m.group, m.state),
		},
		InstanceID: m.instance,
	}
	switch {
	case f == serves:
		n.Withdrawn, n.InstanceAction, n.Hook = true, "", nil
		n.Description = fmt.Sprintf("its Auto Scaling group %s has the instance in service again", m.group)
	case f == warms:
		n.InstanceAction = notice.ActionReturn
		n.Description = fmt.Sprintf("its Auto Scaling group %s takes the instance back into its warm pool (%s)", m.group, m.state)
	case f == departs:
		// The group has EC2 terminate it, which shuts the operating system down first.
		n.Deadline = notice.ShutdownDeadline(m.instanceState(), now.UTC())
	case f == waits && wait > 0:
		n.Deadline = notice.At(now.Add(wait).UTC(), v1alpha1.DeadlineSoft)
		n.Description += fmt.Sprintf("; it waits for its lifecycle hooks until %s at least", poll.Moment(n.Deadline.Time.Time))
	}
	known := "untimed"
	if n.Deadline != nil {
		known = "timed"
	}
	parts := []string{Name, n.Kind, m.group, m.state, known}
	if m.turn != "" {
		parts = append(parts, m.turn)
	}
	n.ID = poll.ID(parts...)
	return n, true
}

// old is how long a node has to be there at least for its instance, which is on its
// way into the warm pool, to come from service, where nobody has seen it there: what
// is launched into the pool has none, or only a new one.
const old = 10 * time.Minute

// service is which instances were in service.
type service struct{ seen map[string]bool }

// note notes the state of an instance that is a node, made so long ago, and reports
// whether it was in service. One that is seen for the first time while it is on its
// way into the pool is judged by its node.
func (s *service) note(instance, state string, age time.Duration) bool {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	served, known := s.seen[instance]
	switch fateOf(state) {
	case serves:
		served = true
	case warms:
		served = served || !known && age > old
	default:
		served = served && !strings.HasPrefix(state, "Warmed:")
	}
	s.seen[instance] = served
	return served
}

// forget drops the instances that are no nodes any more.
func (s *service) forget(isNode func(string) bool) {
	maps.DeleteFunc(s.seen, func(id string, _ bool) bool { return !isNode(id) })
}
