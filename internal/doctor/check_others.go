package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// backlogWarning is the number of waiting messages that causes a warning.
const backlogWarning = 1000

// Tags of other tools (from their documentation).
const (
	tagNTH       = "aws-node-termination-handler/managed"
	tagKarpenter = "karpenter.sh/"
)

// checkReaders looks for signs of another reader of the queue, or of a missing
// reader. Each message reaches only one reader, and readers delete messages that they
// do not know.
func checkReaders(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	q := e.queue
	if len(q.Readers) > 1 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueTwoReaders, Object: e.queueObject(),
			Problem: joinList(q.Readers) + " each allow a program to receive from it: each message reaches only one of the readers",
			Fix:     e.fixQueue("give each reader its own queue", ""),
		})
	}
	if e.cluster.Lifeboat != nil && *e.cluster.Lifeboat == 0 && q.InFlight > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueReadByAnother, Object: e.queueObject(),
			Problem: fmt.Sprintf("%d of its messages are in flight, and Lifeboat is not running: another program reads it", q.InFlight),
			Fix:     "find the principal with sqs:ReceiveMessage on it, and give Lifeboat its own queue: " + e.applyCommand(),
		})
	}
	if q.Waiting >= backlogWarning || q.Growth > 0 && q.Waiting > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueBacklog, Object: e.queueObject(),
			Problem: fmt.Sprintf("%d messages wait in it (%+d during the check): it has no reader, or the reader is too slow", q.Waiting, q.Growth),
			Fix:     "kubectl --namespace lifeboat-system get pods; kubectl --namespace lifeboat-system logs deployment/lifeboat-controller",
		})
	}
	if tool := owningTool(q); tool != "" && e.Queue != "" && !e.hasLifeboatName() {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueueOfAnotherTool, Object: e.queueObject(),
			Problem: "by its name or tags, it is the queue of " + tool + ": if both read it, each receives only some of the messages",
			Fix:     "give Lifeboat its own queue: " + e.applyCommand(),
		})
	}
	return all
}

// owningTool infers the owner of a queue from its name and tags. Karpenter's
// getting-started guide names it after the cluster, its Terraform module
// Karpenter-<cluster>, and kOps <cluster>-nth.
func owningTool(q snapshot.Queue) string {
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
		return "" // the cluster's name may contain "karpenter"
	case strings.Contains(name, "karpenter"):
		return karpenter
	case strings.HasSuffix(name, "-nth"), strings.HasPrefix(name, "nth-"), strings.Contains(name, "node-termination-handler"):
		return nth
	}
	return ""
}

// Tools that also handle interruptions.
const (
	karpenter = "Karpenter"
	nth       = "AWS Node Termination Handler"
)

// checkCompetitors looks for tools that receive the same notices and act on them.
func checkCompetitors(e *diagnosis) []finding.Finding {
	if e.queue.ARN == "" || e.Offline {
		return nil
	}
	var all []finding.Finding
	if k := e.cluster.Karpenter; k.reads(e.queue.Name) {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idKarpenterSameQueue, Object: k.Object,
			Problem: "it reads the queue " + e.queue.Name + " too (settings.interruptionQueue): each notice reaches only one of the two",
			Fix:     k.withoutQueue(),
		})
	}
	for arn, rules := range e.otherQueues() {
		q, _ := e.FindQueue(arn)
		names, _ := namesAndKinds(rules)
		f := finding.Finding{Severity: finding.Warning, Object: "queue " + q.Name}
		switch {
		case e.cluster.Karpenter.reads(q.Name), owningTool(q) == karpenter:
			f.ID = idKarpenterHearsToo
			f.Problem = joinList(names) + " also send spot interruptions to Karpenter's queue: Karpenter deletes the node at once, while Lifeboat still moves its pods"
			f.Fix = e.cluster.Karpenter.withoutQueue()
		case e.cluster.NTH.reads(q.Name), owningTool(q) == nth:
			f.ID = idNTHHearsToo
			f.Problem = joinList(names) + " also send spot interruptions to the queue of AWS Node Termination Handler: two programs drain the same nodes"
			f.Fix = "uninstall AWS Node Termination Handler in clusters where Lifeboat runs"
		default:
			continue // for example an audit log or a chat bot
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b finding.Finding) int { return strings.Compare(a.Object, b.Object) })
	return all
}

// withoutQueue is the command after which Karpenter reads no queue.
func (t *Tool) withoutQueue() string {
	const values = "set settings.interruptionQueue to an empty string in the values of Karpenter's chart"
	if t == nil || t.Name == "" {
		return values
	}
	return fmt.Sprintf("kubectl --namespace %s set env deployment/%s INTERRUPTION_QUEUE=; and %s, which would set it again", t.Namespace, t.Name, values)
}

// otherQueues returns the other queues that receive spot interruptions, with the
// rules that send them.
func (e *diagnosis) otherQueues() map[string][]*rule {
	queues := map[string][]*rule{}
	for _, r := range e.all {
		if !r.receivesEvents(e.Region) || !slices.Contains(r.kinds, notice.KindSpotInterruption) {
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

// SpotQueue is a queue that receives spot interruptions.
type SpotQueue struct {
	Name string
	// Karpenters is true if it is Karpenter's by its name or tags.
	Karpenters bool
	// Rules send the spot interruptions.
	Rules []string
}

// SpotQueues returns the queues of an account that receive spot interruptions, by name.
func SpotQueues(s snapshot.Snapshot, want awssetup.Wiring) []SpotQueue {
	e := newAnalyzer(s).newDiagnosis(s, want, Cluster{})
	var all []SpotQueue
	for arn, rules := range e.otherQueues() {
		q, _ := e.FindQueue(arn)
		one := SpotQueue{Name: q.Name, Karpenters: owningTool(q) == karpenter}
		for _, r := range rules {
			one.Rules = append(one.Rules, r.Name)
		}
		slices.Sort(one.Rules)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b SpotQueue) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// checkTools looks for programs in the cluster that act on interruptions without a
// queue.
func checkTools(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, t := range e.cluster.Twins {
		f := finding.Finding{
			Severity: finding.Broken, ID: idLifeboatTwice, Object: t.Object,
			Problem: "it is the controller of a second installation of Lifeboat. Each of the two has a leader, and both leaders drain the same nodes",
			Fix:     "kubectl " + t.scaleDown() + "; and uninstall its release, then upgrade the other one, because they share objects of the cluster",
		}
		if t.reads(snapshot.Name(e.Queue)) {
			f.Problem += ". Both read the queue " + snapshot.Name(e.Queue) + ": each notice reaches only one of the two"
		}
		all = append(all, f)
	}
	if k := e.cluster.Karpenter; k != nil && Polls(k.Version) {
		f := finding.Finding{
			Severity: finding.Warning, ID: idKarpenterPolls, Object: k.Object,
			Problem: "from v1.12 on it polls DescribeInstanceStatus each minute, and deletes a node for any scheduled event, even one that is days away or completed; it has no option to stop this",
			Fix:     "remove ec2:DescribeInstanceStatus from the IAM policy of Karpenter's controller, and restart the controller",
		}
		if void := e.cluster.Void; len(void) > 0 && !e.cluster.Guard {
			f.Severity = finding.Broken
			f.Problem += "; so it defeats " + joinList(void)
			f.Fix += "; or turn on the guard: helm upgrade lifeboat … --reuse-values --set karpenter.guard.enabled=true"
		}
		all = append(all, f)
	}
	if n := e.cluster.NTH; n != nil {
		// The modes are in its README: a DaemonSet polls every two seconds.
		hears := "it reads a queue, and receives notices at the same time as Lifeboat"
		if strings.HasPrefix(n.Object, "daemonset ") {
			hears = "it polls the metadata of each instance every two seconds, and often sees a spot interruption before the queue does"
		}
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idNTHRuns, Object: n.Object,
			Problem: "AWS Node Termination Handler runs in this cluster: " + hears + ". It drains the same nodes, without regard to Lifeboat's policies",
			Fix:     "uninstall it: helm uninstall aws-node-termination-handler --namespace kube-system",
		})
	}
	return all
}

// Polls reports whether a version of Karpenter polls the instances' status: since
// v1.12.0 (karpenter-provider-aws, commit 5d7ed72d7).
func Polls(version string) bool { return since(version, 12) }

// since reports whether a version of Karpenter is v1.MINOR or later. An unknown version
// counts as the latest.
func since(version string, minor int) bool {
	var major, is int
	if n, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &is); err != nil || n < 2 {
		return true
	}
	return major > 1 || major == 1 && is >= minor
}

// checkUnrelatedRules checks rules for notices with another target. One that matches
// nothing may be the missing rule.
func checkUnrelatedRules(e *diagnosis) []finding.Finding {
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
		f.Problem = "its target is not Lifeboat's queue; also, " + f.Problem
		all = append(all, f)
	}
	return all
}
