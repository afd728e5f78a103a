package interruption

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// books are what is known of a run by who sees all of it.
type books struct {
	run   *modelRun
	pods  map[types.UID]*podPage
	insts map[string]*instPage // by instance id
	heard map[string]bool      // notices that were durable once, by id
	// as is what each node would be had Lifeboat never been there, by name.
	as map[string]*corev1.Node
	// troubles are the times in which nothing can be asked of the process.
	troubles      []trouble
	busyUntil     time.Time
	policyChanged time.Time

	crashes, overrides, writes, marks, putBacks, passes, finished, terminations, repeats, surges, reopened, compared int
	// obliged counts what the product had to do and did; excused what a trouble excused.
	obliged, excused, ended int
}

// podPage is what is known of a pod.
type podPage struct {
	pod            *corev1.Pod // as it was at last
	instance       string
	bound          time.Time
	asked          time.Time // when it was first asked to stop, by whomever
	gone           time.Time
	askedByProduct bool
}

// instPage is what is known of an instance.
type instPage struct {
	node     string
	accepted map[string]time.Time // when notices were durable, by id
	changed  time.Time            // when what was heard of it changed last
	cordoned time.Time
	// cordonedLast is as cordoned, and stays when the node is restored.
	cordonedLast time.Time
	booted       time.Time // when it was last rebooted
	// completed are the notices that the record had when it was last completed.
	completed  map[string]bool
	uncordoned bool // by somebody
	off        time.Time
	// calledOff is when somebody deleted the record.
	calledOff time.Time
	// terminated is when the cloud was last asked to end it.
	terminated time.Time
	writes     int
	passes     int
	burst      time.Time // since when passes are counted
	overrides  []string  // pods that were deleted although a budget held them
	told       map[string]bool
}

// trouble is a time in which something went wrong.
type trouble struct {
	from, to time.Time
	why      string
}

func newBooks(r *modelRun) *books {
	return &books{run: r, pods: map[types.UID]*podPage{}, insts: map[string]*instPage{}, heard: map[string]bool{}, as: map[string]*corev1.Node{}}
}

func (b *books) disturb(from time.Time, d time.Duration, why string) {
	b.troubles = append(b.troubles, trouble{from, from.Add(d), why})
}

// calm returns the end of the first span of that length, from a moment on, in
// which nothing went wrong.
func (b *books) calm(from time.Time, length time.Duration) time.Time {
	for moved := true; moved; {
		moved = false
		for _, t := range b.troubles {
			if t.from.Before(from.Add(length)) && t.to.After(from) {
				from, moved = t.to, true
			}
		}
	}
	return from.Add(length)
}

// troubled reports whether something went wrong a moment ago.
func (b *books) troubled(now time.Time) bool {
	return slices.ContainsFunc(b.troubles, func(t trouble) bool { return now.Sub(t.to) < behind/2 })
}

func (b *books) nodes() []*corev1.Node {
	var all []*corev1.Node
	b.run.Each("Node", func(o client.Object) {
		if n, ok := o.(*corev1.Node); ok {
			all = append(all, n)
		}
	})
	slices.SortFunc(all, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (b *books) inst(id string) *instPage {
	p := b.insts[id]
	if p == nil {
		p = &instPage{accepted: map[string]time.Time{}, told: map[string]bool{}}
		b.insts[id] = p
	}
	return p
}

// changed keeps the books in step with the store.
func (b *books) changed(c model.Change) {
	switch c.Key.Kind {
	case "Pod":
		b.podChanged(c)
	case "Node":
		if n, ok := c.New.(*corev1.Node); ok {
			b.nodeChanged(c.Old, n)
		} else {
			delete(b.as, c.Key.Name)
			if was, ok := c.Old.(*corev1.Node); ok {
				b.inst(instanceOf(was)).changed = b.run.c.Now()
			}
		}
	case "Interruption":
		b.recordChanged(c)
	}
}

func (b *books) podChanged(c model.Change) {
	now := b.run.c.Now()
	if c.New == nil {
		page := b.pods[c.Old.GetUID()]
		page.gone = now
		if page.asked.IsZero() {
			page.asked = now
		}
		return
	}
	pod, _ := c.New.(*corev1.Pod)
	page := b.pods[pod.UID]
	if page == nil {
		page = &podPage{bound: now, instance: instanceOf(b.run.Node(pod.Spec.NodeName))}
		b.pods[pod.UID] = page
	}
	page.pod = pod
	if pod.DeletionTimestamp != nil && page.asked.IsZero() {
		page.asked = now
	}
}

func (b *books) nodeChanged(was client.Object, n *corev1.Node) {
	if was == nil {
		b.as[n.Name] = n.DeepCopy()
		i := b.inst(instanceOf(n))
		i.node, i.changed, i.cordoned, i.uncordoned = n.Name, b.run.c.Now(), time.Time{}, false
		return
	}
	i := b.inst(instanceOf(n))
	switch marked := action.IsMarked(n, action.MarkInterrupted); {
	case !marked:
		i.cordoned = time.Time{}
	case i.cordoned.IsZero():
		i.cordoned, i.cordonedLast = b.run.c.Now(), b.run.c.Now()
	}
}

func (b *books) recordChanged(c model.Change) {
	now := b.run.c.Now()
	i := b.inst(c.Key.Name)
	in, ok := c.New.(*v1alpha1.Interruption)
	if !ok {
		i.changed = now
		return
	}
	if c.Old == nil {
		i.accepted, i.terminated = map[string]time.Time{}, time.Time{}
	}
	if c.Old == nil || c.Old.GetGeneration() != in.Generation {
		i.changed = now
	}
	for j := range in.Spec.Notices {
		n := &in.Spec.Notices[j]
		if _, known := i.accepted[n.ID]; known {
			continue
		}
		i.accepted[n.ID], b.heard[n.ID] = now, true
		b.run.note("accepted %s", n.ID)
		if !n.Withdrawn {
			b.run.c.At(now.Add(noticeDue), "heard "+n.ID, func() { b.mustHear(in.Name, n.ID, now) })
		}
		if d := n.Deadline; d != nil && d.Time.After(now) {
			name := c.Key.Name
			b.run.c.At(d.Time.Time.Add(-model.Grain), "reckoning", func() { b.reckon(name) })
		}
	}
	for _, h := range in.Status.Timeline {
		if h.Reason == v1alpha1.ReasonOverridden {
			for _, name := range podsIn(h.Message) {
				i.told[name] = true
			}
		}
	}
	if was, _ := c.Old.(*v1alpha1.Interruption); was != nil {
		b.ends(was, in)
		b.keeps(was, in)
		b.handled(was, in)
		before, begun := case_{record: was}.begun(), case_{record: in}.begun()
		if !begun.IsZero() && begun != before && in.Status.Decision.Action == v1alpha1.ActionTerminate {
			b.run.c.At(begun.Add(2*time.Minute), "end of "+in.Name, func() { b.mustEnd(in.Name, begun) })
		}
	}
	b.accounts(in)
}

// podsIn reads which pods an entry of a timeline tells of.
func podsIn(message string) []string {
	if _, list, several := strings.Cut(message, " pods: "); several {
		return strings.Split(strings.TrimSuffix(list, ")"), ", ")
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(message, "Drill: "), " ")
	return []string{name}
}

// ends looks at a record that is over, or that begins anew.
func (b *books) ends(was, is *v1alpha1.Interruption) {
	switch done := was.Status.CompletionTime; {
	case done == nil && is.Status.CompletionTime != nil:
		b.finished++
		b.completes(is)
	case done != nil && is.Status.CompletionTime != nil && !done.Equal(is.Status.CompletionTime): // in one write
		b.reopens(is)
		b.completes(is)
	case done != nil && is.Status.CompletionTime == nil:
		b.reopened++
		b.reopens(is)
		if since := is.Status.Since; since == nil || !since.Equal(done) {
			b.run.fail("%s begins anew and forgets that all until %s is over", is.Name, b.at(done.Time))
		}
	}
}

// keeps: a notice leaves a record only for a later one of the same subject.
func (b *books) keeps(was, is *v1alpha1.Interruption) {
	for _, n := range was.Spec.Notices {
		if !slices.ContainsFunc(is.Spec.Notices, func(m v1alpha1.Notice) bool {
			return m.ID == n.ID || (n.Subject != "" && m.Subject == n.Subject && m.Kind == n.Kind)
		}) {
			b.run.fail("the record of %s loses %s", is.Name, n.ID)
		}
	}
}

// accounts holds the counts of a record against each other.
func (b *books) accounts(in *v1alpha1.Interruption) {
	p := record.Drain(&in.Status).Pods
	if p.Total != p.Moved+p.Lost+p.Leaving+p.Waiting || min(p.Moved, p.Lost, p.Leaving, p.Waiting) < 0 {
		b.run.fail("the counts of %s do not add up: %+v", in.Name, p)
	}
	ever := int32(0)
	for _, page := range b.pods {
		if page.instance == in.Name {
			ever++
		}
	}
	if p.Total > ever {
		b.run.fail("%s counts %d pods, and %d were ever on its node: %+v", in.Name, p.Total, ever, p)
	}
}

func (b *books) recordOf(instance string) *v1alpha1.Interruption {
	in, _ := b.run.Get(model.Key{Kind: "Interruption", Name: instance}).(*v1alpha1.Interruption)
	return in
}
