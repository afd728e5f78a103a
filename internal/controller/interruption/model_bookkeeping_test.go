package interruption

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// bookkeeping is the global view of a run: everything that the checks need.
type bookkeeping struct {
	run     *modelRun
	pods    map[types.UID]*podHistory
	insts   map[string]*instanceHistory // by instance id
	durable map[string]bool             // by id: notices that were once durable
	// as is what each node would look like without Lifeboat, by name.
	as map[string]*corev1.Node
	// troubles are the times in which the product's time limits do not apply.
	troubles      []disturbance
	busyUntil     time.Time
	policyChanged time.Time

	crashes, overrides, writes, marks, putBacks, passes, finished, terminations, repeats, surges, reopened, compared int
	// obliged counts the requirements that the product met in time; excused counts those that a
	// disturbance excused.
	obliged, excused, ended, refusals int
}

// podHistory is the known state of a pod.
type podHistory struct {
	pod            *corev1.Pod // its last version
	instance       string
	bound          time.Time
	asked          time.Time // when it was first asked to stop, by the product or others
	gone           time.Time
	askedByProduct bool
	tried          time.Time // when a request to stop it was first refused by the API server
	flapped        bool      // it was not Ready for some time
	surged         time.Time // when its successor was requested
}

// instanceHistory is the known state of an instance.
type instanceHistory struct {
	node     string
	accepted map[string]time.Time // by id: when notices became durable
	changed  time.Time            // when its notices last changed
	cordoned time.Time
	// cordonedLast is cordoned, but stays when the node is restored.
	cordonedLast time.Time
	booted       time.Time // its last reboot
	// completed are the notices that the record had when it was last completed.
	completed  map[string]bool
	uncordoned bool // by others
	off        time.Time
	// deletedAt is when its record was deleted by others.
	deletedAt time.Time
	// terminated is when the cloud was last asked to terminate it.
	terminated time.Time
	ended      bool // EC2 has accepted that
	writes     int
	// refusedPods are the refused requests for its pods.
	refusedPods int
	passes      int
	burst       time.Time // start of the interval in which passes are counted
	// done are the changes that count as handled, and begun is the work that was begun, by subject.
	done  map[change]bool
	begun map[subject]begunWork
	// registered is when its node registered last, and workAt when its node was last held back.
	registered, workAt time.Time
	overrides          []string // pods that were deleted although a budget held them
	announced          map[string]bool
	unwritten          time.Time // when the last write of the record failed; zero: it did not
}

// disturbance is a time span with a fault.
type disturbance struct {
	from, to time.Time
	why      string
}

func newBookkeeping(r *modelRun) *bookkeeping {
	return &bookkeeping{run: r, pods: map[types.UID]*podHistory{}, insts: map[string]*instanceHistory{}, durable: map[string]bool{}, as: map[string]*corev1.Node{}}
}

func (b *bookkeeping) disturb(from time.Time, d time.Duration, why string) {
	b.troubles = append(b.troubles, disturbance{from, from.Add(d), why})
}

// quietSpan returns the end of the first time span of that length, after from, without a fault.
func (b *bookkeeping) quietSpan(from time.Time, length time.Duration) time.Time {
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

// tried notes that a request to stop a pod was refused.
func (b *bookkeeping) tried(pod *corev1.Pod) {
	if page := b.pods[pod.UID]; page != nil && page.tried.IsZero() {
		page.tried = b.run.c.Now()
	}
}

// noteStale notes that a request was about the pod before this one, whose name it has: the cache may show
// this one a moment later.
func (b *bookkeeping) noteStale(q *model.Request, err error) {
	pod, ok := b.run.Get(q.Key).(*corev1.Pod)
	if !ok || q.Verb != "evict" && q.Verb != "delete" || !apierrors.IsConflict(err) {
		return
	}
	if page := b.pods[pod.UID]; page != nil && b.run.c.Now().Sub(page.bound) < behind {
		b.tried(pod)
	}
}

// disturbed reports whether there was a fault a moment ago.
func (b *bookkeeping) disturbed(now time.Time) bool {
	return slices.ContainsFunc(b.troubles, func(t disturbance) bool { return now.Sub(t.to) < behind/2 })
}

func (b *bookkeeping) nodes() []*corev1.Node {
	var all []*corev1.Node
	b.run.Each("Node", func(o client.Object) {
		if n, ok := o.(*corev1.Node); ok {
			all = append(all, n)
		}
	})
	slices.SortFunc(all, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (b *bookkeeping) inst(id string) *instanceHistory {
	p := b.insts[id]
	if p == nil {
		p = &instanceHistory{accepted: map[string]time.Time{}, announced: map[string]bool{}, done: map[change]bool{}, begun: map[subject]begunWork{}}
		b.insts[id] = p
	}
	return p
}

// changed updates the bookkeeping with a change of the store.
func (b *bookkeeping) changed(c model.Change) {
	switch c.Key.Kind {
	case "Pod":
		b.podChanged(c)
	case "Node":
		if n, ok := c.New.(*corev1.Node); ok {
			b.nodeChanged(c.Old, n)
		} else {
			delete(b.as, c.Key.Name)
			if was, ok := c.Old.(*corev1.Node); ok {
				i := b.inst(instanceOf(was))
				i.changed, i.cordoned = b.run.c.Now(), time.Time{}
			}
		}
	case "Interruption":
		b.recordChanged(c)
	}
}

func (b *bookkeeping) podChanged(c model.Change) {
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
		page = &podHistory{bound: now, instance: instanceOf(b.run.Node(pod.Spec.NodeName))}
		b.pods[pod.UID] = page
	}
	page.pod = pod
	if pod.DeletionTimestamp != nil && page.asked.IsZero() {
		page.asked = now
	}
}

func (b *bookkeeping) nodeChanged(was client.Object, n *corev1.Node) {
	if was == nil {
		b.as[n.Name] = n.DeepCopy()
		i := b.inst(instanceOf(n))
		i.node, i.changed, i.cordoned, i.uncordoned, i.registered = n.Name, b.run.c.Now(), time.Time{}, false, b.run.c.Now()
		return
	}
	i := b.inst(instanceOf(n))
	switch marked := mutate.IsMarked(n, mutate.MarkInterrupted); {
	case !marked:
		i.cordoned = time.Time{}
	case i.cordoned.IsZero():
		i.cordoned, i.cordonedLast = b.run.c.Now(), b.run.c.Now()
	}
}

func (b *bookkeeping) recordChanged(c model.Change) {
	now := b.run.c.Now()
	i := b.inst(c.Key.Name)
	in, ok := c.New.(*v1beta1.Interruption)
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
		i.accepted[n.ID], b.durable[n.ID] = now, true
		b.run.note("accepted %s", n.ID)
		if b.run.people {
			b.expect(in.Name, n)
			continue
		}
		if !n.Withdrawn {
			b.run.c.At(now.Add(noticeDue), "notice "+n.ID, func() { b.checkNoticeHandled(in.Name, n.ID, now) })
		}
		if d := n.Deadline; d != nil && d.Time.After(now) {
			name := c.Key.Name
			b.run.c.At(d.Time.Time.Add(-model.Grain), "reckoning", func() { b.checkDeadline(name) })
		}
	}
	for _, h := range in.Status.Timeline {
		if h.Reason == v1beta1.ReasonProtectionOverridden {
			for _, name := range podsIn(h.Message) {
				i.announced[name] = true
			}
		}
	}
	if was, _ := c.Old.(*v1beta1.Interruption); was != nil {
		b.checkCompletion(was, in)
		b.checkNoticesKept(was, in)
		if b.run.people {
			b.noteHandled(was, in)
			if was.Generation != in.Generation || len(handledIn(was)) != len(handledIn(in)) {
				b.expectRestored(in.Name)
			}
			b.checkCounts(in)
			return
		}
		b.checkHandled(was, in)
		before, begun := case_{record: was}.begun(), case_{record: in}.begun()
		if !begun.IsZero() && begun != before && in.Status.Decision.Action == v1beta1.ActionTerminate {
			b.run.c.At(latest(begun, now).Add(2*time.Minute), "end of "+in.Name, func() { b.checkTerminated(in.Name, begun) })
		}
	}
	b.checkCounts(in)
}

// podsIn parses the pods that a timeline entry names.
func podsIn(message string) []string {
	if _, list, several := strings.Cut(message, " pods: "); several {
		return strings.Split(strings.TrimSuffix(list, ")"), ", ")
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(message, "Drill: "), " ")
	return []string{name}
}

// checkCompletion checks a record that completes or reopens.
func (b *bookkeeping) checkCompletion(was, is *v1beta1.Interruption) {
	switch done := was.Status.CompletionTime; {
	case done == nil && is.Status.CompletionTime != nil:
		b.finished++
		b.noteCompletion(is)
	case done != nil && is.Status.CompletionTime != nil && !done.Equal(is.Status.CompletionTime): // in one write
		b.checkReopened(is)
		b.noteCompletion(is)
	case done != nil && is.Status.CompletionTime == nil:
		b.reopened++
		b.checkReopened(is)
		if since := endedBefore(is); !since.Equal(done.Time) {
			b.run.fail("%s reopens and loses its completion time %s", is.Name, b.at(done.Time))
		}
	}
}

// checkNoticesKept checks that a notice is removed from a record only by a later one about the same
// subject.
func (b *bookkeeping) checkNoticesKept(was, is *v1beta1.Interruption) {
	for _, n := range was.Spec.Notices {
		if !slices.ContainsFunc(is.Spec.Notices, func(m v1beta1.Notice) bool {
			return m.ID == n.ID || (n.Subject != "" && m.Subject == n.Subject && m.Kind == n.Kind)
		}) {
			b.run.fail("the record of %s loses %s", is.Name, n.ID)
		}
	}
}

// checkCounts checks that the counts of a record add up.
func (b *bookkeeping) checkCounts(in *v1beta1.Interruption) {
	p := record.Drain(&in.Status).PodCounts
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

func (b *bookkeeping) recordOf(instance string) *v1beta1.Interruption {
	in, _ := b.run.Get(model.Key{Kind: "Interruption", Name: instance}).(*v1beta1.Interruption)
	return in
}
