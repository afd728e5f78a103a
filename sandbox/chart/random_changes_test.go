//go:build e2e

package chart_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// interruptionChanges are those of people, of Lifeboat, and of forgers.
func interruptionChanges() []change[*v1beta1.Interruption] {
	users := []string{alice, bob, "carol@example.com", "dave@example.com", "erin@example.com"}
	action := func(rnd *rand.Rand, was *v1beta1.UserAction) *v1beta1.UserAction {
		switch {
		case rnd.IntN(4) == 0:
			return nil
		case was != nil && rnd.IntN(2) == 0:
			other := was.DeepCopy()
			other.Note = "other"
			return other
		}
		return word(pick(rnd, users...))
	}
	one := func(name string, do func(*rand.Rand, *v1beta1.Notice)) change[*v1beta1.Interruption] {
		return change[*v1beta1.Interruption]{name, func(rnd *rand.Rand, r *v1beta1.Interruption) {
			if len(r.Spec.Notices) > 0 {
				do(rnd, &r.Spec.Notices[rnd.IntN(len(r.Spec.Notices))])
			}
		}}
	}
	spec := func(name string, do func(*rand.Rand, *v1beta1.InterruptionSpec)) change[*v1beta1.Interruption] {
		return change[*v1beta1.Interruption]{name, func(rnd *rand.Rand, r *v1beta1.Interruption) { do(rnd, &r.Spec) }}
	}
	deadline := func(rnd *rand.Rand, n *v1beta1.Notice) {
		n.Deadline = &v1beta1.Deadline{Time: n.Time, Type: pick(rnd, v1beta1.DeadlineHard, v1beta1.DeadlineEstimated, v1beta1.DeadlineSoft)}
	}
	return []change[*v1beta1.Interruption]{
		spec("an approval", func(rnd *rand.Rand, s *v1beta1.InterruptionSpec) { s.Approval = action(rnd, s.Approval) }),
		spec("a hold", func(rnd *rand.Rand, s *v1beta1.InterruptionSpec) { s.Hold = action(rnd, s.Hold) }),
		spec("a release", func(rnd *rand.Rand, s *v1beta1.InterruptionSpec) { s.Released = action(rnd, s.Released) }),
		spec("its node", func(rnd *rand.Rand, s *v1beta1.InterruptionSpec) { s.NodeName = pick(rnd, "node-a", "node-b") }),
		spec("its node's UID", func(_ *rand.Rand, s *v1beta1.InterruptionSpec) { s.NodeUID = "other" }),
		spec("its instance", func(_ *rand.Rand, s *v1beta1.InterruptionSpec) { s.InstanceID = "i-other" }),
		spec("a notice", func(_ *rand.Rand, s *v1beta1.InterruptionSpec) {
			s.Notices = append(s.Notices, newNotice(newID(s), "sqs"))
		}),
		spec("a request", func(rnd *rand.Rand, s *v1beta1.InterruptionSpec) {
			n := asks(pick(rnd, users...), nil)
			n.ID = newID(s)
			s.Notices = append(s.Notices, n)
		}),
		spec("the order", func(_ *rand.Rand, s *v1beta1.InterruptionSpec) { slices.Reverse(s.Notices) }),
		spec("a notice less", func(rnd *rand.Rand, s *v1beta1.InterruptionSpec) {
			if len(s.Notices) > 1 {
				i := rnd.IntN(len(s.Notices))
				s.Notices = slices.Delete(s.Notices, i, i+1)
			}
		}),
		one("a withdrawal", func(_ *rand.Rand, n *v1beta1.Notice) { n.Withdrawn = !n.Withdrawn }),
		one("a deadline", deadline),
		one("a drill", func(rnd *rand.Rand, n *v1beta1.Notice) { *pick(rnd, &n.Drill, &n.EndInstance) = true }),
		one("a text", func(rnd *rand.Rand, n *v1beta1.Notice) {
			n.Description = "requested by " + pick(rnd, users...) + pick(rnd, "", ": x", ".org: x", " x")
		}),
		one("a word", func(rnd *rand.Rand, n *v1beta1.Notice) {
			*pick(rnd, &n.Kind, &n.Source, &n.Subject, &n.InstanceAction, &n.InstanceState, &n.EventTypeCode) = pick(rnd, "Requested", "user", "x")
		}),
		one("a time", func(_ *rand.Rand, n *v1beta1.Notice) { n.Time.Time = n.Time.Add(time.Minute) }),
		one("a hook", func(_ *rand.Rand, n *v1beta1.Notice) {
			n.LifecycleHook = &v1beta1.LifecycleHookInvocation{Group: "g"}
		}),
	}
}

// newID returns the id of a notice that the list does not have.
func newID(s *v1beta1.InterruptionSpec) string {
	for i := 0; ; i++ {
		id := fmt.Sprint("new-", i)
		if !slices.ContainsFunc(s.Notices, func(n v1beta1.Notice) bool { return n.ID == id }) {
			return id
		}
	}
}

// claimWrites has Karpenter, and another user, delete and update NodeClaims.
func (c *cast) claimWrites(rnd *rand.Rand) func(*rand.Rand) (attempt, error) {
	var all []*unstructured.Unstructured
	for range 2 * stored {
		all = append(all, c.randomClaim(rnd))
	}
	users := []author{c.karpenter, c.karpenter, c.other}
	return func(rnd *rand.Rand) (attempt, error) {
		by, claim := pick(rnd, users...), all[rnd.IntN(len(all))].DeepCopy()
		if rnd.IntN(2) == 0 {
			do := func(ctx context.Context) error { return by.client.Delete(ctx, claim, client.DryRunAll) }
			return attempt{by.user + " deletes " + describe(claim), mayDeleteClaim(by, claim, c.now), do}, nil
		}
		after := claim.DeepCopy()
		annotations := after.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		for range 1 + rnd.IntN(2) {
			key := pick(rnd, termination, termination, "karpenter.sh/nodepool-hash", v1beta1.AnnotationGuardedUntil)
			if delete(annotations, key); rnd.IntN(3) > 0 {
				annotations[key] = c.now.Add(time.Duration(rnd.IntN(3)-1) * time.Minute).UTC().Format(time.RFC3339)
			}
		}
		after.SetAnnotations(annotations)
		return attempt{by.user + " updates " + describe(claim), mayUpdateClaim(by, claim, after, c.now), write(rnd, by.client, claim, after)}, nil
	}
}

func describe(claim *unstructured.Unstructured) string {
	text, err := claim.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (c *cast) randomClaim(rnd *rand.Rand) *unstructured.Unstructured {
	guard := pick(rnd, "", "", "tomorrow", c.now.Format(time.RFC3339), c.now.Add(time.Second).Format(time.RFC3339),
		c.now.Add(time.Hour).UTC().Format(time.RFC3339), c.now.Add(time.Hour).UTC().Format(time.RFC3339), c.now.Add(-time.Second).Format(time.RFC3339))
	annotations := map[string]any{}
	if guard != "" {
		annotations[v1beta1.AnnotationGuardedUntil] = guard
	}
	if rnd.IntN(3) == 0 {
		annotations[termination] = c.now.UTC().Format(time.RFC3339)
	}
	claim := c.claims.create(c.name("claim"), func(o map[string]any) {
		o["metadata"].(map[string]any)["annotations"] = annotations
		o["status"] = pick(rnd, conditions("Registered"), conditions("Registered", "Initialized"), conditions("Launched"), conditions("Registered", "DisruptionReason"), map[string]any{})
		o["spec"] = pick(rnd, map[string]any{}, map[string]any{"expireAfter": "Never"}, map[string]any{"expireAfter": "1m"},
			map[string]any{"expireAfter": "720h"}, map[string]any{"expireAfter": "720h"}, map[string]any{"expireAfter": "soon"})
	})
	return claim
}
