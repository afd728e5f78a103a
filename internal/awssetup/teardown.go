package awssetup

import "fmt"

// Teardown returns the plan that deletes everything that Lifeboat created. It deletes
// the rules first, so that no rule delivers to a deleted queue.
func Teardown(w Wiring, o Observed, opts Options) Plan {
	p := newPlan(w, o)
	for _, r := range o.Rules {
		if !isShared(r.Tags) {
			p.removeRule(r, opts, "")
		}
	}
	p.leaveTopic(o, opts)
	for _, q := range []struct {
		name  string
		found ObservedQueue
	}{{w.Queue.Name, o.Queue}, {w.DeadLetter.Name, o.DeadLetter}} {
		if !q.found.Exists() {
			continue
		}
		if owner := w.foreignOwner(TagCluster, w.Cluster, q.found.Tags); owner != "" {
			p.note(fmt.Sprintf("queue %s stays: %s", q.name, owner))
			continue
		}
		reason := "it contains no messages"
		if n := q.found.Messages(); n > 0 {
			reason = fmt.Sprintf("about %s in it will be deleted", quantity(n, "message"))
		}
		p.change(Delete, QueueObject, q.name, reason, nil)
	}
	return p
}

func quantity(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
