package autoscaling

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
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
)

// fateOf reads a lifecycle state (EC2 Auto Scaling User Guide, "Amazon EC2 Auto
// Scaling instance lifecycle"). The list of states is open. What is warmed, in
// standby, detached or has its root volume replaced lives, whatever comes after
// the colon; of states that are not known only those of terminating count.
func fateOf(state string) fate {
	switch state = strings.TrimSpace(state); state {
	case string(types.LifecycleStateInService):
		return serves
	case string(types.LifecycleStateTerminatingWait):
		return waits
	case string(types.LifecycleStateTerminatingProceed), string(types.LifecycleStateTerminated):
		return departs
	}
	if state == string(types.LifecycleStateTerminating) || strings.HasPrefix(state, string(types.LifecycleStateTerminating)+":") {
		return doomed // also Terminating:Retained: a hook gave up, and somebody has to terminate it
	}
	return lives
}

// patience is how long the group waits at least for its terminate hooks, or
// zero where there are none: as long as the most impatient of them does without
// an answer or a heartbeat (EC2 Auto Scaling API Reference, HeartbeatTimeout).
func patience(hooks []types.LifecycleHook) time.Duration {
	var least time.Duration
	for i := range hooks {
		h := &hooks[i]
		timeout := time.Duration(aws.ToInt32(h.HeartbeatTimeout)) * time.Second
		if aws.ToString(h.LifecycleTransition) != "autoscaling:EC2_INSTANCE_TERMINATING" || timeout <= 0 {
			continue
		}
		if least == 0 || timeout < least {
			least = timeout
		}
	}
	return least
}

// member is an instance as its group lists it.
type member struct {
	group, instance, state string
}

func (m member) subject() string { return notice.Cut(m.group+"/"+m.instance, 512) }

// read makes a notice of it, or reports false where there is none. That it
// serves is a notice that takes back. It waits for its hooks from now on for
// the time given; zero is not known.
func (m member) read(now time.Time, wait time.Duration) (notice.Notice, bool) {
	f := fateOf(m.state)
	if f == lives || m.group == "" || !instanceFormat.MatchString(m.instance) {
		return notice.Notice{}, false
	}
	n := notice.Notice{
		Notice: v1alpha1.Notice{
			Kind: notice.KindAutoScalingTermination, Source: Name, Subject: m.subject(), EventTypeCode: notice.Cut(m.state, 128),
			InstanceAction: notice.ActionTerminate,
			Description:    fmt.Sprintf("its Auto Scaling group %s terminates the instance (%s)", m.group, m.state),
		},
		InstanceID: m.instance,
	}
	switch {
	case f == serves:
		n.Withdrawn, n.InstanceAction = true, ""
		n.Description = fmt.Sprintf("its Auto Scaling group %s has the instance in service again", m.group)
	case f == departs:
		n.Deadline = notice.At(now.UTC(), v1alpha1.DeadlineHard)
	case f == waits && wait > 0:
		n.Deadline = notice.At(now.Add(wait).UTC(), v1alpha1.DeadlineSoft)
		n.Description += fmt.Sprintf("; it waits for its lifecycle hooks until %s at least", poll.Moment(n.Deadline.Time.Time))
	}
	known := "untimed"
	if n.Deadline != nil {
		known = "timed"
	}
	n.ID = poll.ID(Name, n.Kind, m.group, m.state, known)
	return n, true
}
