package autoscaling

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// instanceFormat matches EC2 instance ids.
var instanceFormat = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// stateMeaning is what a lifecycle state means for the instance.
type stateMeaning int

const (
	unaffected     stateMeaning = iota // no effect, or unknown
	inService                          // in service: withdraws an earlier termination notice
	terminating                        // it will terminate at an unknown time
	waitsForHooks                      // it terminates once its hooks are completed
	terminatingNow                     // it terminates now
	enteringPool                       // on its way into the warm pool, after launch or from service
)

// meaningOf maps a lifecycle state (EC2 Auto Scaling User Guide, "Amazon EC2
// Auto Scaling instance lifecycle"). The list of states is open. Instances that
// are warmed, in standby, detached or having their root volume replaced stay
// alive, whatever follows the colon. Of unknown states only those of
// terminating count. An instance on its way into the warm pool may come from
// service.
func meaningOf(state string) stateMeaning {
	switch state = strings.TrimSpace(state); state {
	case string(types.LifecycleStateInService):
		return inService
	case string(types.LifecycleStateTerminatingWait):
		return waitsForHooks
	case string(types.LifecycleStateTerminatingProceed), string(types.LifecycleStateTerminated):
		return terminatingNow
	case string(types.LifecycleStateWarmedPending), string(types.LifecycleStateWarmedPendingWait), string(types.LifecycleStateWarmedPendingProceed):
		return enteringPool
	}
	if state == string(types.LifecycleStateTerminating) || strings.HasPrefix(state, string(types.LifecycleStateTerminating)+":") {
		return terminating // also Terminating:Retained: a hook was abandoned, and a person must terminate the instance
	}
	return unaffected
}

// patience is how long the group waits at least for its terminate hooks, or
// zero without any: the shortest heartbeat timeout (EC2 Auto Scaling API
// Reference, HeartbeatTimeout).
func patience(hooks []groupcache.Hook) time.Duration {
	var least time.Duration
	for _, h := range hooks {
		if h.Terminating && h.Timeout > 0 && (least == 0 || h.Timeout < least) {
			least = h.Timeout
		}
	}
	return least
}

// member is an instance in its group's list.
type member struct {
	group, instance, state string
	// served is true if it was in service before.
	served bool
	// episode distinguishes repetitions of the same group and state.
	episode string
}

func (m member) subject() string { return notice.Cut(m.group+"/"+m.instance, 512) }

// instanceState is the EC2 state of an instance that terminates now.
func (m member) instanceState() string {
	if m.state == string(types.LifecycleStateTerminated) {
		return notice.StateTerminated
	}
	return notice.StateShuttingDown
}

// read converts a member, or returns false if there is nothing to report. In
// service, the notice is a withdrawal. wait is the remaining time of its hooks
// from now on; zero: unknown.
func (m member) read(now time.Time, wait time.Duration) (notice.Notice, bool) {
	f := meaningOf(m.state)
	if f == unaffected || f == enteringPool && !m.served || m.group == "" || !instanceFormat.MatchString(m.instance) {
		return notice.Notice{}, false
	}
	n := notice.Notice{
		Notice: v1beta1.Notice{
			Kind: notice.KindAutoScalingTermination, Source: Name, Subject: m.subject(), EventTypeCode: notice.Cut(m.state, 128),
			InstanceAction: notice.ActionTerminate,
			LifecycleHook:  &v1beta1.LifecycleHookInvocation{Group: notice.Cut(m.group, 255)},
			Description:    fmt.Sprintf("its Auto Scaling group %s terminates the instance (%s)", m.group, m.state),
		},
		InstanceID: m.instance,
	}
	switch {
	case f == inService:
		n.Withdrawn, n.InstanceAction, n.LifecycleHook = true, "", nil
		n.Description = fmt.Sprintf("its Auto Scaling group %s has returned the instance to service", m.group)
	case f == enteringPool:
		n.InstanceAction = notice.ActionReturn
		n.Description = fmt.Sprintf("its Auto Scaling group %s takes the instance back into its warm pool (%s)", m.group, m.state)
	case f == terminatingNow:
		// EC2 shuts the operating system down before it terminates the
		// instance.
		n.Deadline = notice.ShutdownDeadline(m.instanceState(), now.UTC())
	case f == waitsForHooks && wait > 0:
		n.Deadline = notice.At(now.Add(wait).UTC(), v1beta1.DeadlineSoft)
		n.Description += fmt.Sprintf("; it waits for its lifecycle hooks at least until %s", poll.Moment(n.Deadline.Time.Time))
	}
	known := "untimed"
	if n.Deadline != nil {
		known = "timed"
	}
	parts := []string{Name, n.Kind, m.group, m.state, known}
	if m.episode != "" {
		parts = append(parts, m.episode)
	}
	n.ID = poll.ID(parts...)
	return n, true
}

// minServedAge is how old a Node must be to conclude that an instance on its
// way into the warm pool comes from service. It is used if the instance was not
// observed before: one that launches into the pool has no Node or a new one.
const minServedAge = 10 * time.Minute

// serviceHistory remembers which instances were in service.
type serviceHistory struct{ seen map[string]bool }

// note stores the state of an instance and reports whether it was in service.
// If the first observation is on the way into the pool, the age of its Node
// decides.
func (s *serviceHistory) note(instance, state string, age time.Duration) bool {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	served, known := s.seen[instance]
	switch meaningOf(state) {
	case inService:
		served = true
	case enteringPool:
		served = served || !known && age > minServedAge
	default:
		served = served && !strings.HasPrefix(state, "Warmed:")
	}
	s.seen[instance] = served
	return served
}

// forget drops the instances that are no longer nodes.
func (s *serviceHistory) forget(isNode func(string) bool) {
	maps.DeleteFunc(s.seen, func(id string, _ bool) bool { return !isNode(id) })
}
