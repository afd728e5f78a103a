package template

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// finish links the parts.
func (b *builder) finish() snapshot.Snapshot {
	for _, p := range b.policies {
		b.attachPolicy(p)
	}
	for _, r := range b.readers {
		if i, ok := b.handles[r.handle]; ok {
			b.out.Queues[i].Readers = append(b.out.Queues[i].Readers, r.text)
		}
	}
	for i := range b.out.Queues {
		b.out.Queues[i].KeyPolicy = b.keys[b.out.Queues[i].KMSKey]
	}
	b.attachTargets()
	b.attachHooks()
	b.out.Offline = true
	b.out.Account, b.out.Region = b.given.Account, b.given.Region
	return b.out
}

// attachPolicy adds a policy to its queue.
func (b *builder) attachPolicy(p attached) {
	if i, ok := b.handles[p.handle]; ok {
		b.setPolicy(&b.out.Queues[i], p.text)
		return
	}
	possible := map[int]bool{}
	for handle, i := range b.handles {
		if symbol.Equal(handle, p.handle) == symbol.Maybe {
			possible[i] = true
		}
	}
	for i := range possible {
		q := &b.out.Queues[i]
		if q.Policy == "" && q.PolicyKnown {
			q.PolicyKnown = false
			b.out.Unread = append(b.out.Unread, snapshot.Unread{
				From: "queue " + q.Title(), What: "the files do not say whether a policy belongs to it: the policy is that of " + p.handle, Fix: symbol.Supply(p.handle + q.ARN),
			})
		}
	}
}

// setPolicy sets the policy of a queue. A policy that is not in the files as a whole
// stays unknown.
func (b *builder) setPolicy(q *snapshot.Queue, policy string) {
	if strings.HasPrefix(policy, "{?") {
		q.PolicyKnown = false
		b.out.Unread = append(b.out.Unread, snapshot.Unread{
			From: "queue " + q.Title(), What: "its policy is not in the files: " + strings.Join(symbol.Undefined(policy), ", "), Fix: symbol.Supply(policy),
		})
		return
	}
	q.Policy, q.PolicyKnown = policy, true
}

// attachTargets adds separate targets to their rules.
func (b *builder) attachTargets() {
	for _, t := range b.targets {
		found := false
		for i := range b.out.Rules {
			if b.out.Rules[i].Name == t.rule {
				b.out.Rules[i].Targets = append(b.out.Rules[i].Targets, t.to)
				b.out.Rules[i].TargetsKnown = true
				found = true
			}
		}
		if !found {
			b.reportUnread("target "+t.to.ARN, fmt.Sprintf("it is a target of the rule %q, which is not in the files", t.rule))
			b.out.Unread[len(b.out.Unread)-1].Fix = symbol.Supply(t.rule)
		}
	}
}
