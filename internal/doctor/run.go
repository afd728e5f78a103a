package doctor

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checks returns the checks of a queue and its rules, in the order of their reports.
// Later checks see the earlier findings.
func checks() []func(*diagnosis) []finding.Finding {
	return []func(*diagnosis) []finding.Finding{
		checkQueueExists,
		checkPatterns,
		checkRules,
		checkTargets,
		checkTopic,
		checkPolicy,
		checkEncryption,
		checkCoverage,
		checkQueueSettings,
		checkDeadLetters,
		checkAbsentDeadLetters,
		checkTargetDeadLetters,
		checkReaders,
		checkCompetitors,
	}
}

// accountChecks returns the checks that are not about a single queue.
func accountChecks() []func(*diagnosis) []finding.Finding {
	return []func(*diagnosis) []finding.Finding{
		checkClock,
		checkRuleQuota,
		checkPermissions,
		checkUnanswered,
		checkUnread,
		checkTargetsGiven,
		checkEngine,
		checkUnrelatedRules,
		checkTools,
		checkKarpenter,
		checkDrainers,
		checkGroups,
		checkHookEvents,
		checkOtherHandlers,
	}
}

// diagnosis is the state of the check of one queue.
type diagnosis struct {
	snapshot.Snapshot
	desired  awssetup.Wiring
	cluster  Cluster
	examples []sampleEvent
	// queue is the checked queue. Its ARN is empty if only rules are known.
	queue snapshot.Queue
	// all are all rules. rules are those that fill the queue or should fill it.
	all, rules []*rule
	// found are the findings so far.
	found []finding.Finding
}

func (a *analyzer) newDiagnosis(s snapshot.Snapshot, want awssetup.Wiring, cluster Cluster) diagnosis {
	if q, _ := s.FindQueue(s.Queue); len(topicsOf(q, want)) > 0 && want.Cluster != "" {
		if shared, err := want.Shared(snapshot.Name(topicsOf(q, want)[0])); err == nil {
			want = shared
		}
	} else if slices.ContainsFunc(s.Rules, func(r snapshot.Rule) bool { return awssetup.IsMerged(want.Cluster, r.Name) }) {
		if merged, err := want.Merged(); err == nil {
			want = merged
		}
	}
	return diagnosis{Snapshot: s, desired: want, cluster: cluster, examples: a.examples, all: a.rules(s, want)}
}

// diagnose checks a wiring. It does not verify the fixes.
func (a *analyzer) diagnose(s snapshot.Snapshot, want awssetup.Wiring, cluster Cluster) []finding.Finding {
	e := a.newDiagnosis(s, want, cluster)
	var all []finding.Finding
	for _, queue := range e.queuesToCheck() {
		if e.Offline && len(e.Rules)+len(e.Queues) == 0 {
			break // the files contain only groups
		}
		one := e
		one.queue = queue
		one.rules = one.relevantRules()
		for _, check := range checks() {
			one.found = append(one.found, check(&one)...)
		}
		all = append(all, one.found...)
	}
	e.rules = e.all
	for _, check := range accountChecks() {
		all = append(all, check(&e)...)
	}
	all = distinct(all)
	finding.Sort(all)
	return all
}

// queuesToCheck returns the named queue, or all queues that rules for notices fill.
// If there are none, it returns one empty queue so that the rules are checked.
func (e *diagnosis) queuesToCheck() []snapshot.Queue {
	if e.Queue != "" {
		q, _ := e.FindQueue(e.Queue)
		return []snapshot.Queue{q}
	}
	var queues []snapshot.Queue
	for _, r := range e.all {
		for _, t := range r.Targets {
			if !r.forNotices || snapshot.Part(t.ARN, 2) != "sqs" {
				continue
			}
			q, ok := e.FindQueue(t.ARN)
			if !ok && slices.ContainsFunc(e.Queues, func(o snapshot.Queue) bool { return symbol.Equal(o.ARN, t.ARN) == symbol.Maybe }) {
				continue // it may be one of these; mayTarget
			}
			if !slices.ContainsFunc(queues, func(o snapshot.Queue) bool { return o.ARN == q.ARN }) {
				queues = append(queues, q)
			}
		}
	}
	for _, q := range e.Queues {
		may := func(r *rule) bool {
			one := diagnosis{Snapshot: e.Snapshot, queue: q}
			return one.mayTarget(r)
		}
		if slices.ContainsFunc(e.all, may) && !slices.ContainsFunc(queues, func(o snapshot.Queue) bool { return o.ARN == q.ARN }) {
			queues = append(queues, q)
		}
	}
	if len(queues) == 0 {
		queues = []snapshot.Queue{{}}
	}
	return queues
}

// relevantRules returns the rules that fill the queue or should: those with
// Lifeboat's names, and those for notices without a target.
func (e *diagnosis) relevantRules() []*rule {
	var all []*rule
	for _, r := range e.all {
		orphan := r.forNotices && e.Offline && r.TargetsKnown && len(r.Targets) == 0
		if r.role != "" || orphan || e.targetsQueue(r) {
			all = append(all, r)
		}
	}
	return all
}

// targetsQueue reports whether the queue is a target of the rule. If the targets are
// unknown, it assumes so for a rule for notices.
func (e *diagnosis) targetsQueue(r *rule) bool {
	switch {
	case !r.TargetsKnown:
		return r.forNotices
	case e.mayTarget(r):
		return r.forNotices
	case e.targetsUnreadTopic(r):
		return true
	case e.queue.ARN == "":
		return r.forNotices && len(r.Targets) > 0
	}
	return len(r.To(e.queue.ARN)) > 0
}

// targetsUnreadTopic reports whether the rule sends to the shared topic, of which nothing was read.
func (e *diagnosis) targetsUnreadTopic(r *rule) bool {
	if e.desired.Topic == "" || e.queue.ARN == "" {
		return false
	}
	arn := e.desired.Target().ARN
	_, read := e.FindTopic(arn)
	return !read && len(r.To(arn)) > 0
}

// hasLifeboatName reports whether the queue has the name that Lifeboat gives it.
func (e *diagnosis) hasLifeboatName() bool {
	return e.desired.Cluster != "" && e.queue.Name == e.desired.Queue.Name
}

// applyCommand is the command that corrects the wiring.
func (e *diagnosis) applyCommand() string {
	cluster := e.desired.Cluster
	if cluster == "" {
		cluster = "NAME"
	}
	if e.desired.Topic != "" {
		cluster += " --shared-topic " + e.desired.Topic
	}
	return "lifeboat aws setup --cluster " + cluster
}

// fix returns the fix for a resource: an edit of its file, `lifeboat aws setup` for
// Lifeboat's own resources, or a command.
func (e *diagnosis) fix(from string, ours bool, edit, command string) string {
	switch {
	case from != "":
		return "in " + from + ": " + edit + e.overwritten(from)
	case ours:
		return e.applyCommand()
	case command == "":
		return edit
	}
	return command
}

// fixQueue returns the fix for the queue's attributes.
func (e *diagnosis) fixQueue(edit, attributes string) string {
	return e.fix(e.queue.From, e.hasLifeboatName(), edit, e.setAttributes(e.queue, attributes))
}

// fixQueueOrCreate is fixQueue, with the command that creates what is missing. For
// Lifeboat's own queue it is the same command.
func (e *diagnosis) fixQueueOrCreate(edit string) string {
	fix := e.fixQueue(edit, "")
	if strings.HasPrefix(fix, e.applyCommand()) {
		return fix
	}
	return fix + "; " + e.applyCommand() + " creates one"
}

// setAttributes returns the command that sets attributes in the form Name=value.
func (e *diagnosis) setAttributes(q snapshot.Queue, attributes string) string {
	if attributes == "" {
		return ""
	}
	url := q.URL
	if url == "" {
		url = "$(aws sqs get-queue-url --queue-name " + q.Name + " --query QueueUrl --output text)"
	}
	return "aws sqs set-queue-attributes --queue-url " + url + " --attributes " + attributes
}

func (e *diagnosis) queueObject() string { return "queue " + e.queue.Title() }

// mayTarget reports whether the queue may be a target of the rule: the files do not
// say so.
func (e *diagnosis) mayTarget(r *rule) bool {
	return r.forNotices && len(r.To(e.queue.ARN)) == 0 && slices.ContainsFunc(r.Targets, func(t snapshot.Target) bool {
		return e.queue.ARN != "" && symbol.Equal(t.ARN, e.queue.ARN) == symbol.Maybe && !e.isOtherQueue(t.ARN)
	})
}

// isOtherQueue reports whether an ARN is that of another queue in the files.
func (e *diagnosis) isOtherQueue(arn string) bool {
	_, ok := e.FindQueue(arn)
	return ok && arn != e.queue.ARN
}

// distinct removes duplicate findings: the rules of two queues can have the same.
func distinct(all []finding.Finding) []finding.Finding {
	var out []finding.Finding
	for _, f := range all {
		if !slices.ContainsFunc(out, func(o finding.Finding) bool {
			return o.ID == f.ID && o.Object == f.Object && o.Problem == f.Problem && o.Fix == f.Fix
		}) {
			out = append(out, f)
		}
	}
	return out
}

// joinList joins names with commas and "and".
func joinList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// quoteShell quotes text as one shell word.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
