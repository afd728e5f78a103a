//go:build e2e

package chart_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func created(c client.Client, o client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return c.Create(ctx, o, client.DryRunAll) }
}

func (c *cast) nodeNoticeWrites(rnd *rand.Rand) func(*rand.Rand) (attempt, error) {
	for _, node := range []*corev1.Node{c.nodeA, c.nodeB} {
		n := nodeNotice(node, nil)
		n.ObjectMeta = c.metadata(rnd, node.Name)
		c.store(n)
	}
	at := metav1.NewTime(time.Now().Add(time.Minute).Truncate(time.Second))
	first := func(name string, do func(*rand.Rand, *v1beta1.MetadataNotice)) change[*v1beta1.NodeNotice] {
		return change[*v1beta1.NodeNotice]{name, func(rnd *rand.Rand, n *v1beta1.NodeNotice) {
			if len(n.Spec.Notices) > 0 {
				do(rnd, &n.Spec.Notices[0])
			}
		}}
	}
	changes := append(metadataChanges[*v1beta1.NodeNotice](),
		change[*v1beta1.NodeNotice]{"its UID", func(rnd *rand.Rand, n *v1beta1.NodeNotice) {
			n.Spec.NodeUID = pick(rnd, string(c.nodeA.UID), string(c.nodeB.UID), "other")
		}},
		change[*v1beta1.NodeNotice]{"its instance", func(rnd *rand.Rand, n *v1beta1.NodeNotice) {
			n.Spec.InstanceID = pick(rnd, "i-0a1b2c3d4e5f60718", "i-0123456789abcdef0", "database")
		}},
		change[*v1beta1.NodeNotice]{"notices", func(rnd *rand.Rand, n *v1beta1.NodeNotice) { n.Spec.Notices = many(rnd.IntN(11)) }},
		first("a kind", func(rnd *rand.Rand, n *v1beta1.MetadataNotice) {
			n.Kind = pick(rnd, "SpotInterruption", "RebalanceRecommendation", "ScheduledChange", "AutoScalingTermination", "InstanceStatus")
		}),
		first("a deadline", func(rnd *rand.Rand, n *v1beta1.MetadataNotice) { n.Deadline = pick(rnd, nil, &at) }),
		first("a withdrawal", func(_ *rand.Rand, n *v1beta1.MetadataNotice) { n.Withdrawn = !n.Withdrawn }),
		first("an id", func(rnd *rand.Rand, n *v1beta1.MetadataNotice) {
			n.ID = pick(rnd, "imds/x", "ec2/x", "imds/"+strings.Repeat("x", 123), "imds/"+strings.Repeat("x", 124))
		}),
		first("a description", func(rnd *rand.Rand, n *v1beta1.MetadataNotice) {
			n.Description = strings.Repeat("x", pick(rnd, 0, 512, 513))
		}),
	)
	return func(rnd *rand.Rand) (attempt, error) {
		by := pick(rnd, c.agents...)
		if rnd.IntN(2) == 0 { // a new one
			fresh := nodeNotice(c.nodeC, nil)
			fresh.Name = pick(rnd, "node-c", "node-c", "node-c", "node-d", "node-")
			n, text := changed(rnd, fresh, changes)
			may := mayWriteNodeNotice(by, nil, n) && fresh.Name != "node-" // no name of an object
			return attempt{fmt.Sprintf("agent of %q creates %s", by.node, text), may, createdSomehow(rnd, by.client, n)}, nil
		}
		before := &v1beta1.NodeNotice{}
		if err := c.admin.Get(c.t.Context(), client.ObjectKey{Name: pick(rnd, "node-a", "node-b")}, before); err != nil {
			return attempt{}, err
		}
		after, text := changed(rnd, before, changes)
		after.ResourceVersion = before.ResourceVersion
		return attempt{
			fmt.Sprintf("agent of %q writes %s", by.node, text), mayWriteNodeNotice(by, before, after), patchOf(by.client, before, after),
		}, nil
	}
}

// createdSomehow creates an object, or applies it: agents may patch.
func createdSomehow(rnd *rand.Rand, c client.Client, n *v1beta1.NodeNotice) func(context.Context) error {
	if rnd.IntN(2) == 0 {
		return created(c, n)
	}
	return func(ctx context.Context) error {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		gvk := v1beta1.GroupVersion.WithKind("NodeNotice")
		if err := c.Scheme().Convert(n, u, nil); err != nil {
			return err
		}
		u.SetGroupVersionKind(gvk)
		unstructured.RemoveNestedField(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("random"), client.DryRunAll)
	}
}

func (c *cast) interruptionWrites(rnd *rand.Rand) func(*rand.Rand) (attempt, error) {
	var keys []client.ObjectKey
	for range stored {
		name := c.name("i-random")
		r := record(name, "node-a", newNotice("1", "sqs"))
		r.ObjectMeta = c.metadata(rnd, name)
		for i := range rnd.IntN(3) {
			n := newNotice(fmt.Sprint("more-", i), "ec2")
			n.Withdrawn = rnd.IntN(2) == 0
			r.Spec.Notices = append(r.Spec.Notices, n)
		}
		for i := range rnd.IntN(3) {
			r.Spec.Notices = append(r.Spec.Notices, asks(pick(rnd, alice, bob), func(n *v1beta1.Notice) { n.ID = fmt.Sprint("request-", i) }))
		}
		c.store(r)
		before := r.DeepCopy()
		for i, field := range []**v1beta1.UserAction{&r.Spec.Approval, &r.Spec.Hold, &r.Spec.Released} {
			if rnd.IntN(3) == i {
				*field = word("carol@example.com")
			}
		}
		if err := c.other.client.Patch(c.t.Context(), r, client.MergeFrom(before)); err != nil {
			c.t.Fatal(err)
		}
		keys = append(keys, client.ObjectKeyFromObject(r))
	}
	writers := append([]author{c.controllers[0]}, c.operators...)
	changes := append(metadataChanges[*v1beta1.Interruption](), interruptionChanges()...)
	return func(rnd *rand.Rand) (attempt, error) {
		by := pick(rnd, writers...)
		if rnd.IntN(4) == 0 { // a new one
			r, text := changed(rnd, record("i-new", "node-b", asks(by.user, nil)), changes)
			may := mayWriteInterruption(by, nil, r) && len(r.Spec.Notices) > 0
			return attempt{by.user + " creates " + text, may, created(by.client, r)}, nil
		}
		before := &v1beta1.Interruption{}
		if err := c.admin.Get(c.t.Context(), pick(rnd, keys...), before); err != nil {
			return attempt{}, err
		}
		after, text := changed(rnd, before, changes)
		after.ResourceVersion = before.ResourceVersion
		may := mayWriteInterruption(by, before, after) && len(after.Spec.Notices) > 0 && before.Spec.InstanceID == after.Spec.InstanceID
		return attempt{by.user + " writes " + text, may, patchOf(by.client, before, after)}, nil
	}
}

func (c *cast) pauseWrites(*rand.Rand) func(*rand.Rand) (attempt, error) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	pause := func(name, pool, by string) *v1beta1.Pause {
		return &v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.PauseSpec{
			By: by, StartTime: now, Until: metav1.NewTime(now.Add(time.Hour)), NodePool: pool,
		}}
	}
	for _, by := range c.operators[:2] {
		p := pause("nodepool-"+strings.Split(by.user, "@")[0], strings.Split(by.user, "@")[0], by.user)
		if err := by.client.Create(c.t.Context(), p); err != nil {
			c.t.Fatal(err)
		}
		c.stored = append(c.stored, p)
	}
	changes := append(metadataChanges[*v1beta1.Pause](),
		change[*v1beta1.Pause]{"its author", func(rnd *rand.Rand, p *v1beta1.Pause) { p.Spec.By = pick(rnd, alice, bob, "carol@example.com") }},
		change[*v1beta1.Pause]{"its end", func(rnd *rand.Rand, p *v1beta1.Pause) {
			p.Spec.Until = metav1.NewTime(p.Spec.StartTime.Add(pick(rnd, time.Hour, 24*time.Hour, 24*time.Hour+time.Second)))
		}},
		change[*v1beta1.Pause]{"its pool", func(rnd *rand.Rand, p *v1beta1.Pause) { p.Spec.NodePool = pick(rnd, "", "alice", "bob") }},
		change[*v1beta1.Pause]{"its note", func(_ *rand.Rand, p *v1beta1.Pause) { p.Spec.Note = "x" }},
	)
	writers := []author{c.operators[0], c.operators[1], c.operators[3], c.other, c.controllers[0]}
	return func(rnd *rand.Rand) (attempt, error) {
		by := pick(rnd, writers...)
		if rnd.IntN(2) == 0 { // a new one
			p, text := changed(rnd, pause("cluster", "", by.user), changes)
			return attempt{by.user + " creates " + text, mayWritePause(by, nil, p), created(by.client, p)}, nil
		}
		before := &v1beta1.Pause{}
		if err := c.admin.Get(c.t.Context(), client.ObjectKey{Name: pick(rnd, "nodepool-alice", "nodepool-bob")}, before); err != nil {
			return attempt{}, err
		}
		after, text := changed(rnd, before, changes)
		after.ResourceVersion = before.ResourceVersion
		update := func(ctx context.Context) error { return by.client.Update(ctx, after, client.DryRunAll) }
		return attempt{by.user + " writes " + text, mayWritePause(by, before, after), update}, nil
	}
}
