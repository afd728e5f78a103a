package diagnose

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// checks are all checks of a queue and the rules that fill it, in the order in
// which their findings are reported. Later ones see what earlier ones found.
func checks() []func(*exam) []finding.Finding {
	return []func(*exam) []finding.Finding{
		checkQueueThere,
		checkPatterns,
		checkRules,
		checkTargets,
		checkPolicy,
		checkEncryption,
		checkCoverage,
		checkQueueSettings,
		checkDeadLetters,
		checkTargetDeadLetters,
		checkReaders,
		checkCompetitors,
	}
}

// accountChecks are the checks of what is not about one queue.
func accountChecks() []func(*exam) []finding.Finding {
	return []func(*exam) []finding.Finding{
		checkClock,
		checkPermissions,
		checkUnread,
		checkEngine,
		checkElsewhere,
		checkTools,
		checkGroups,
		checkHeard,
		checkAnswerers,
	}
}

// exam is one queue under examination.
type exam struct {
	snapshot.Snapshot
	want     wiring.Wiring
	cluster  Cluster
	examples []canonical
	// queue is the queue; its ARN is empty where rules are known and no queue is.
	queue snapshot.Queue
	// all are all rules, rules those that fill the queue or should.
	all, rules []*rule
	// found is what was found so far.
	found []finding.Finding
}

// Run judges a wiring: s is what was found, want what Lifeboat would make, and
// cluster what is known of who else is at work there. want's Cluster is empty
// where no cluster was named; nothing is expected by name then. The worst findings
// come first.
func Run(s snapshot.Snapshot, want wiring.Wiring, cluster Cluster) []finding.Finding {
	e := exam{Snapshot: s, want: want, cluster: cluster, examples: canonicals(s.Account, s.Region)}
	e.all = examine(s, want, e.examples)
	var all []finding.Finding
	for _, queue := range e.subjects() {
		if e.Offline && len(e.Rules)+len(e.Queues) == 0 {
			break // the files are about groups only
		}
		one := e
		one.queue = queue
		one.rules = one.concerned()
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

// subjects are the queues to examine: the one that was named, or all that rules
// for notices fill. Where no rule's targets are known, or nothing fills a queue,
// the rules are examined without one.
func (e *exam) subjects() []snapshot.Queue {
	if e.Queue != "" {
		q, _ := e.FindQueue(e.Queue)
		return []snapshot.Queue{q}
	}
	var queues []snapshot.Queue
	for _, r := range e.all {
		for _, t := range r.Targets {
			if !r.hearsAWS || snapshot.Part(t.ARN, 2) != "sqs" {
				continue
			}
			q, _ := e.FindQueue(t.ARN)
			if !slices.ContainsFunc(queues, func(o snapshot.Queue) bool { return o.ARN == q.ARN }) {
				queues = append(queues, q)
			}
		}
	}
	if len(queues) == 0 {
		queues = []snapshot.Queue{{}}
	}
	return queues
}

// concerned are the rules that fill the queue, or should: those with one of our
// names, and those for notices that fill nothing.
func (e *exam) concerned() []*rule {
	var all []*rule
	for _, r := range e.all {
		orphan := r.hearsAWS && e.Offline && r.TargetsKnown && len(r.Targets) == 0
		if r.role != "" || orphan || e.feeds(r) {
			all = append(all, r)
		}
	}
	return all
}

// feeds tells whether a rule has the queue as a target. Where its targets are not
// known, a rule for notices is taken to have it.
func (e *exam) feeds(r *rule) bool {
	switch {
	case !r.TargetsKnown:
		return r.hearsAWS
	case e.queue.ARN == "":
		return r.hearsAWS && len(r.Targets) > 0
	}
	return len(r.To(e.queue.ARN)) > 0
}

// ours tells whether the queue has the name that Lifeboat gives it.
func (e *exam) ours() bool { return e.want.Cluster != "" && e.queue.Name == e.want.Queue.Name }

// apply is the command that makes the wiring right.
func (e *exam) apply() string {
	cluster := e.want.Cluster
	if cluster == "" {
		cluster = "NAME"
	}
	return "lifeboat wire apply --cluster " + cluster
}

// fix is how to mend something: where it is written, if it was read from a file;
// by Lifeboat, if it is Lifeboat's; else by a command.
func (e *exam) fix(from string, ours bool, edit, command string) string {
	switch {
	case from != "":
		return "in " + from + ": " + edit
	case ours:
		return e.apply()
	case command == "":
		return edit
	}
	return command
}

// fixQueue is how to mend the queue's attributes.
func (e *exam) fixQueue(edit, attributes string) string {
	return e.fix(e.queue.From, e.ours(), edit, e.setAttributes(e.queue, attributes))
}

// setAttributes is the command that sets attributes, written as Name=value.
func (e *exam) setAttributes(q snapshot.Queue, attributes string) string {
	if attributes == "" {
		return ""
	}
	url := q.URL
	if url == "" {
		url = "$(aws sqs get-queue-url --queue-name " + q.Name + " --query QueueUrl --output text)"
	}
	return "aws sqs set-queue-attributes --queue-url " + url + " --attributes " + attributes
}

func (e *exam) queueObject() string { return "queue " + e.queue.Name }

// distinct leaves out findings that are said already: of two queues, a rule's are
// the same.
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

// list joins names as a sentence does.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// quoteShell makes text one word of a shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
