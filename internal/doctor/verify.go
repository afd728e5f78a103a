package doctor

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// noVerifiedFix replaces a fix that failed its verification.
const noVerifiedFix = "correct it by hand: each edit that the doctor can infer would leave it or stop other notices"

// Run checks a wiring. s is the existing wiring, want the one that Lifeboat would
// create, and cluster describes other programs. If want.Cluster is empty, no
// resources are expected by name. The result is sorted by severity, the worst first.
//
// Run applies each fix to a copy of the wiring and checks the copy. It withholds a fix
// that does not remove its finding, or after which fewer events reach a queue.
func Run(s snapshot.Snapshot, want awssetup.Wiring, cluster Cluster) []finding.Finding {
	return newAnalyzer(s).run(s, want, cluster)
}

func (a *analyzer) run(s snapshot.Snapshot, want awssetup.Wiring, cluster Cluster) []finding.Finding {
	all := a.diagnose(s, want, cluster)
	before := a.deliveries(s, want)
	for i, f := range all {
		if err := a.verify(f, s, want, cluster, before); err != nil {
			all[i].Fix, all[i].Change = noVerifiedFix, nil
		}
	}
	return all
}

// verify applies a fix to a copy of the wiring and checks the result. It returns nil
// for a fix that cannot be applied in memory.
func (a *analyzer) verify(f finding.Finding, s snapshot.Snapshot, want awssetup.Wiring, cluster Cluster, before map[delivery]bool) error {
	after, changed := Apply(f, s)
	if !changed {
		return nil
	}
	for _, left := range a.diagnose(after, want, cluster) {
		if left.ID == f.ID && left.Object == f.Object {
			return fmt.Errorf("the fix %q leaves %s: %s", f.Fix, left.ID, left.Problem)
		}
	}
	now := a.deliveries(after, want)
	for d := range before {
		if !now[d] {
			return fmt.Errorf("after the fix %q, %s no longer reaches queue %d", f.Fix, d.example, d.queue)
		}
	}
	return nil
}

// Apply returns a copy of the wiring with the fix of a finding. changed is false if
// the fix cannot be applied in memory.
func Apply(f finding.Finding, s snapshot.Snapshot) (after snapshot.Snapshot, changed bool) {
	edit, ok := f.Change.(change)
	if !ok || edit == nil {
		return s, false
	}
	after, err := clone(s)
	if err != nil {
		return s, false
	}
	edit(&after)
	return after, true
}

// clone returns a deep copy.
func clone(s snapshot.Snapshot) (snapshot.Snapshot, error) {
	var out snapshot.Snapshot
	text, err := json.Marshal(s)
	if err != nil {
		return out, fmt.Errorf("copying the wiring: %w", err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("copying the wiring: %w", err)
	}
	return out, nil
}

// delivery is an example that reaches a queue. The queue is its index: a fix can
// rename it.
type delivery struct {
	queue   int
	example string
	// complete means that every event of the example's kind arrives, and not only
	// those of particular instances.
	complete bool
}

// deliveries returns what reaches the queues of a wiring.
func (a *analyzer) deliveries(s snapshot.Snapshot, want awssetup.Wiring) map[delivery]bool {
	all := map[delivery]bool{}
	e := a.newDiagnosis(s, want, Cluster{})
	for i, q := range s.Queues {
		one := e
		one.queue = q
		for _, r := range e.all {
			if !r.receivesEvents(s.Region) || !one.delivers(r) {
				continue
			}
			for _, example := range r.matched {
				all[delivery{i, example.name, false}] = true
				if len(one.narrowingFields(r, example)) == 0 {
					all[delivery{i, example.name, true}] = true
				}
			}
		}
	}
	return all
}

// delivers reports whether EventBridge can deliver the events of a rule to the queue,
// unchanged.
func (e *diagnosis) delivers(r *rule) bool {
	return slices.ContainsFunc(r.To(e.queue.ARN), func(t snapshot.Target) bool {
		return len(e.checkInput(r, t)) == 0 && len(e.checkFIFO(r, t)) == 0 && !e.policyRefuses(r, t)
	}) && !isAWSKey(e.queue.KMSKey)
}

func (e *diagnosis) policyRefuses(r *rule, t snapshot.Target) bool {
	if t.Topic != "" {
		topic, _ := e.FindTopic(t.Topic)
		return e.topicRefuses(topic) || e.refusesTopic(topic)
	}
	if t.RoleARN != "" || !e.queue.PolicyKnown {
		return false
	}
	policy, err := parsePolicy(e.queue.Policy)
	if err != nil {
		return true
	}
	verdict := policy.Evaluate(deliveryRequest(r.ARN, snapshot.Part(r.ARN, 4), e.queue.ARN))
	return verdict == queuepolicy.NoOpinion || verdict == queuepolicy.Deny
}
