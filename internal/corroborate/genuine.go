package corroborate

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// spotMarked begins the status codes of spot requests whose instance EC2 takes back (EC2 User
// Guide, "Spot request status").
const spotMarked = "marked-for-"

// Genuine decides whether EC2 confirms the notice that has an instance drained. Everybody who may
// write to the queue can send any message, and a stolen agent can write any notice about its node.
// What Lifeboat's polls have read from AWS's API is confirmed, and what a person asked for. EC2
// has no API for the other kinds: there a message from the queue is enough, and what only an agent
// reports is not.
func Genuine(n *v1beta1.Notice, all []v1beta1.Notice, i *cloud.Instance) Verdict {
	switch {
	case n.Drill, isConfirmed(n), slices.ContainsFunc(all, func(other v1beta1.Notice) bool {
		return other.Kind == n.Kind && !other.Withdrawn && isConfirmed(&other)
	}):
		return Verdict{Answer: Agree}
	case i == nil, i.State != "pending" && i.State != "running": // it ends, whatever the reason
		return Verdict{Answer: Agree}
	}
	switch n.Kind {
	case notice.KindSpotInterruption:
		return spotInterruption(i)
	case notice.KindInstanceStateChange:
		return differ("a notice says that instance %s is %s, but EC2 says that it is %s", i.ID, n.InstanceState, i.State)
	case notice.KindScheduledChange:
		return unknown("EC2 has not yet confirmed the scheduled change of instance %s", i.ID)
	}
	if slices.ContainsFunc(all, func(other v1beta1.Notice) bool {
		return other.Kind == n.Kind && !other.Withdrawn && other.Source != notice.SourceIMDS
	}) {
		return Verdict{Answer: Agree}
	}
	return unknown("only the agent on the node of instance %s reports this %s", i.ID, n.Kind)
}

// isConfirmed reports whether Lifeboat read a notice from AWS's API, or a person asked for it.
func isConfirmed(n *v1beta1.Notice) bool {
	return n.Source == notice.SourceEC2 || n.Source == notice.SourceAutoScaling || n.Source == notice.SourceUser
}

func spotInterruption(i *cloud.Instance) Verdict {
	switch {
	case strings.HasPrefix(i.SpotStatus, spotMarked):
		return Verdict{Answer: Agree}
	case i.SpotStatus == "":
		return unknown("EC2 shows no spot request of instance %s to this controller", i.ID)
	}
	return differ("a notice says that EC2 takes instance %s back, but the status of its spot request is %s", i.ID, i.SpotStatus)
}
