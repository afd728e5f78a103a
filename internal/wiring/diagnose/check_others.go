package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// backlog is how many messages may wait before somebody should look.
const backlog = 1000

// Tags of other tools (their own documentation).
const (
	tagNTH       = "aws-node-termination-handler/managed"
	tagKarpenter = "karpenter.sh/"
)

// checkReaders looks for signs that somebody else reads the queue, or nobody.
// Each message goes to one reader only, and all of them delete what they do not
// know.
func checkReaders(e *exam) []finding.Finding {
	var all []finding.Finding
	q := e.queue
	if len(q.Readers) > 1 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueTwoReaders, Object: e.queueObject(),
			Problem: list(q.Readers) + " each let somebody receive from it: every message goes to one reader only, and is lost to the other",
			Fix:     e.fixQueue("give each reader a queue of its own", ""),
		})
	}
	if e.cluster.Lifeboat != nil && *e.cluster.Lifeboat == 0 && q.InFlight > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueReadByAnother, Object: e.queueObject(),
			Problem: fmt.Sprintf("%d of its messages are in somebody's hands, and Lifeboat is not running: another program reads it", q.InFlight),
			Fix:     "find out who has sqs:ReceiveMessage on it, and give Lifeboat a queue of its own: " + e.apply(),
		})
	}
	if q.Waiting >= backlog || q.Growth > 0 && q.Waiting > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueBacklog, Object: e.queueObject(),
			Problem: fmt.Sprintf("%d messages wait in it (%+d while it was looked at): nobody reads it, or not fast enough", q.Waiting, q.Growth),
			Fix:     "kubectl --namespace lifeboat-system get pods; kubectl --namespace lifeboat-system logs deployment/lifeboat-controller",
		})
	}
	if tool := toolOf(q); tool != "" && e.Queue != "" && !e.ours() {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueOfAnotherTool, Object: e.queueObject(),
			Problem: "by its name or tags it is the queue of " + tool + ": if both read it, each gets only some of the messages",
			Fix:     "give Lifeboat a queue of its own: " + e.apply(),
		})
	}
	return all
}

// toolOf guesses by its name and tags whose queue it is: Karpenter's
// getting-started guide names it after the cluster, its Terraform module
// Karpenter-<cluster>, kOps <cluster>-nth.
func toolOf(q snapshot.Queue) string {
	name := strings.ToLower(q.Name)
	for tag := range q.Tags {
		switch {
		case tag == tagNTH:
			return nth
		case strings.HasPrefix(tag, tagKarpenter):
			return karpenter
		}
	}
	switch {
	case strings.HasPrefix(name, "lifeboat-"):
		return "" // the cluster may be called karpenter
	case strings.Contains(name, "karpenter"):
		return karpenter
	case strings.HasSuffix(name, "-nth"), strings.HasPrefix(name, "nth-"), strings.Contains(name, "node-termination-handler"):
		return nth
	}
	return ""
}

// The tools that answer interruptions too.
const (
	karpenter = "Karpenter"
	nth       = "AWS Node Termination Handler"
)

// checkCompetitors looks for others that hear the same notices and act on them.
func checkCompetitors(e *exam) []finding.Finding {
	if e.queue.ARN == "" || e.Offline {
		return nil
	}
	var all []finding.Finding
	if k := e.cluster.Karpenter; k.reads(e.queue.Name) {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idKarpenterSameQueue, Object: k.Object,
			Problem: "it reads the queue " + e.queue.Name + " too (settings.interruptionQueue): every notice goes to one of the two, and the other never hears of it",
			Fix:     "helm upgrade karpenter … --reuse-values --set settings.interruptionQueue=",
		})
	}
	for arn, rules := range e.otherQueues() {
		q, _ := e.FindQueue(arn)
		names, _ := namesAndKinds(rules)
		f := finding.Finding{Severity: finding.Warning, Object: "queue " + q.Name}
		switch {
		case e.cluster.Karpenter.reads(q.Name), toolOf(q) == karpenter:
			f.ID = idKarpenterHearsToo
			f.Problem = list(names) + " send spot warnings to Karpenter's queue too: Karpenter deletes the node at once, while Lifeboat is still moving its pods"
			f.Fix = "helm upgrade karpenter … --reuse-values --set settings.interruptionQueue="
		case e.cluster.NTH.reads(q.Name), toolOf(q) == nth:
			f.ID = idNTHHearsToo
			f.Problem = list(names) + " send spot warnings to the queue of AWS Node Termination Handler too: two programs drain the same nodes"
			f.Fix = "uninstall AWS Node Termination Handler in clusters that Lifeboat looks after"
		default:
			continue // an audit, a chat bot: no concern of ours
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b finding.Finding) int { return strings.Compare(a.Object, b.Object) })
	return all
}

// otherQueues are the other queues that get spot warnings, with the rules that
// send them.
func (e *exam) otherQueues() map[string][]*rule {
	queues := map[string][]*rule{}
	for _, r := range e.all {
		if !r.hears(e.Region) || !slices.Contains(r.kinds, notice.KindSpotInterruption) {
			continue
		}
		for _, t := range r.Targets {
			if snapshot.Part(t.ARN, 2) == "sqs" && t.ARN != e.queue.ARN {
				queues[t.ARN] = append(queues[t.ARN], r)
			}
		}
	}
	return queues
}

// checkTools looks for programs in the cluster that act on interruptions without
// any queue.
func checkTools(e *exam) []finding.Finding {
	var all []finding.Finding
	if k := e.cluster.Karpenter; k != nil && polls(k.Version) {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idKarpenterPolls, Object: k.Object,
			Problem: "from v1.14 on it polls DescribeInstanceStatus each minute, with no switch, and deletes a node for any scheduled event, even one that is days away or completed",
			Fix:     "take ec2:DescribeInstanceStatus out of the IAM policy of Karpenter's controller, and restart it",
		})
	}
	if n := e.cluster.NTH; n != nil {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idNTHRuns, Object: n.Object,
			Problem: "AWS Node Termination Handler runs in this cluster: it drains the same nodes at the same time, and knows nothing of Lifeboat's policies",
			Fix:     "uninstall it: helm uninstall aws-node-termination-handler --namespace kube-system",
		})
	}
	return all
}

// polls tells whether a version of Karpenter polls the instances' status. One
// that is not known is taken to.
func polls(version string) bool {
	var major, minor int
	if n, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil || n < 2 {
		return true
	}
	return major > 1 || major == 1 && minor >= 14
}

// checkElsewhere looks at rules for notices that have nothing to do with the
// queue: one that matches nothing may be the one that is missing.
func checkElsewhere(e *exam) []finding.Finding {
	if e.Queue == "" {
		return nil
	}
	var all []finding.Finding
	for _, r := range e.all {
		if r.role != "" || len(r.To(e.Queue)) > 0 || !r.TargetsKnown || r.err != nil || len(r.lint.Matches) > 0 || !mentionsAWS(r.Pattern) {
			continue
		}
		f := e.matchesNothing(r)
		f.Severity, f.ID, f.Kinds = finding.Info, idRuleElsewhere, nil
		f.Problem = "it does not send to Lifeboat's queue; besides, " + f.Problem
		all = append(all, f)
	}
	return all
}
