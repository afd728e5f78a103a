package nodenotice

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const instance = "i-0a1b2c3d4e5f60718"

var start = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

// world is a cluster with one node, and a source that leads.
type world struct {
	*polltest.World
	t          *testing.T
	source     *Source
	generation int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: polltest.New(t), t: t}
	w.Set(start)
	w.AddNode(instance)
	elected := make(chan struct{})
	close(elected)
	w.source = w.replica(elected)
	return w
}

func (w *world) replica(elected <-chan struct{}) *Source {
	return New(Options{Client: w.Kube, Live: w.Kube, Nodes: w, Recorder: w.Recorder(), Elected: elected, Metrics: w.Metrics, Clock: w.Clock})
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{}
	if err := w.Kube.Get(w.t.Context(), client.ObjectKey{Name: polltest.NodeName(instance)}, node); err != nil {
		w.t.Fatal(err)
	}
	return node
}

// writes makes the NodeNotice of the node contain the notices, as an agent does.
func (w *world) writes(edit func(*v1beta1.NodeNoticeSpec), notices ...v1beta1.MetadataNotice) {
	w.t.Helper()
	w.generation++
	own := &v1beta1.NodeNotice{}
	err := w.Kube.Get(w.t.Context(), client.ObjectKey{Name: polltest.NodeName(instance)}, own)
	spec := v1beta1.NodeNoticeSpec{InstanceID: instance, NodeUID: string(w.node().UID), Notices: notices}
	if edit != nil {
		edit(&spec)
	}
	if err != nil {
		own = &v1beta1.NodeNotice{ObjectMeta: metav1.ObjectMeta{Name: polltest.NodeName(instance), UID: "own"}}
	}
	before := own.DeepCopy()
	own.Spec, own.Generation = spec, w.generation
	if err != nil {
		err = w.Kube.Create(w.t.Context(), own)
	} else {
		err = w.Kube.Patch(w.t.Context(), own, client.MergeFrom(before))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// settle takes the NodeNotice until it waits for more than a minute.
func (w *world) settle() {
	w.t.Helper()
	for range 50 {
		again, err := w.source.take(w.t.Context(), polltest.NodeName(instance))
		if err != nil {
			w.t.Fatal(err)
		}
		if again == 0 || again >= rejectedResync {
			return
		}
		w.Pass(again)
	}
	w.t.Fatal("it does not settle")
}

func (w *world) accepted() *metav1.Condition {
	own := &v1beta1.NodeNotice{}
	if err := w.Kube.Get(w.t.Context(), client.ObjectKey{Name: polltest.NodeName(instance)}, own); err != nil {
		return nil
	}
	return meta.FindStatusCondition(own.Status.Conditions, v1beta1.ConditionAccepted)
}

func spotAt(at time.Time, id string) v1beta1.MetadataNotice {
	due := metav1.NewTime(at)
	return v1beta1.MetadataNotice{ID: "imds/SpotInterruption/" + id, Kind: notice.KindSpotInterruption, Subject: "spot/instance-action",
		InstanceAction: notice.ActionTerminate, Deadline: &due}
}

func TestNoticeIsRecordedAtTheFirstPass(t *testing.T) {
	w := newWorld(t)
	w.writes(nil, spotAt(start.Add(2*time.Minute), "1"))
	if _, err := w.source.take(t.Context(), polltest.NodeName(instance)); err != nil {
		t.Fatal(err)
	}
	all := w.Notices(instance)
	if len(all) != 1 || all[0].Source != notice.SourceIMDS || all[0].Deadline == nil || all[0].Deadline.Type != v1beta1.DeadlineHard || !all[0].ReceivedTime.Time.Equal(start) {
		t.Fatalf("on record: %+v", all)
	}
	w.settle()
	if c := w.accepted(); c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1beta1.ReasonRecorded {
		t.Errorf("condition %+v", c)
	}
}

// No time that an agent writes orders anything: the received time is the controller's own.
func TestClockOfAgentOrdersNothing(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour, 200 * 365 * 24 * time.Hour} {
		w := newWorld(t)
		issued := metav1.NewTime(start.Add(skew))
		w.writes(nil, v1beta1.MetadataNotice{ID: "imds/r", Kind: notice.KindRebalanceRecommendation, Subject: "r", IssueTime: &issued},
			v1beta1.MetadataNotice{ID: "imds/spot", Kind: notice.KindSpotInterruption, Subject: "spot", IssueTime: &issued})
		w.settle()
		found := false
		for _, n := range w.Notices(instance) {
			found = found || n.ID == "imds/spot"
			if n.ReceivedTime.After(w.Clock()) || n.Time.After(w.Clock()) {
				t.Errorf("skew %s: received %s, issued %s", skew, n.ReceivedTime, n.Time)
			}
			if n.ID == "imds/spot" && !n.Deadline.Time.Time.Equal(start.Add(2*time.Minute)) {
				t.Errorf("skew %s: a spot interruption without a time is due at %s", skew, n.Deadline.Time)
			}
		}
		if !found {
			t.Errorf("skew %s: the spot notice is not on record", skew)
		}
	}
}

func TestMismatchedNodeNoticesAreRefused(t *testing.T) {
	const victim = "i-0bbbbbbbbbbbbbbbb"
	for name, tc := range map[string]struct {
		prepare func(w *world)
		edit    func(*v1beta1.NodeNoticeSpec)
		reason  string // "": the NodeNotice is deleted
	}{
		"another node's instance":                    {func(w *world) { w.AddNode(victim) }, func(s *v1beta1.NodeNoticeSpec) { s.InstanceID = victim }, v1beta1.ReasonInstanceMismatch},
		"an instance that is no node of the cluster": {nil, func(s *v1beta1.NodeNoticeSpec) { s.InstanceID = victim }, v1beta1.ReasonInstanceMismatch},
		"an earlier node of that name":               {nil, func(s *v1beta1.NodeNoticeSpec) { s.NodeUID = "earlier" }, ""},
		"a node that is gone":                        {func(w *world) { w.RemoveNode(instance) }, nil, ""},
		"an instance that two nodes claim": {func(w *world) {
			first := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-first"}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + instance}}
			if err := w.Kube.Create(context.Background(), first); err != nil {
				w.t.Fatal(err)
			}
		}, nil, v1beta1.ReasonInstanceClaimedTwice},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.writes(tc.edit, spotAt(start.Add(2*time.Minute), "1"))
			if tc.prepare != nil {
				tc.prepare(w)
			}
			w.settle()
			for _, id := range []string{instance, victim} {
				if got := w.Notices(id); got != nil {
					t.Errorf("on record of %s: %+v", id, got)
				}
			}
			c := w.accepted()
			if tc.reason == "" && c != nil || tc.reason != "" && (c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason) {
				t.Errorf("condition %+v, want %s", c, tc.reason)
			}
		})
	}
}

func TestWithdrawalReachesTheRecord(t *testing.T) {
	w := newWorld(t)
	due := metav1.NewTime(start.Add(24 * time.Hour))
	event := v1beta1.MetadataNotice{ID: "imds/1", Kind: notice.KindScheduledChange, Subject: "instance-event-1", Deadline: &due}
	w.writes(nil, event)
	w.settle()
	event.ID, event.Withdrawn = "imds/2", true
	w.writes(nil, event)
	w.settle()
	if all := w.Notices(instance); len(all) != 1 || !all[0].Withdrawn {
		t.Errorf("on record: %+v", all)
	}
}

// A compromised agent reports new notices without end. The queue's notice stays on record.
func TestAgentDoesNotPushOutTheQueue(t *testing.T) {
	w := newWorld(t)
	queue := notice.Notice{InstanceID: instance, Notice: v1beta1.Notice{ID: "q", Kind: notice.KindSpotInterruption, Source: notice.SourceQueue,
		Time: metav1.NewTime(start), Deadline: notice.At(start.Add(2*time.Minute), v1beta1.DeadlineHard)}}
	if _, err := w.Recorder().Record(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	for i := range 31 {
		w.writes(nil, v1beta1.MetadataNotice{ID: fmt.Sprint("imds/", i), Kind: notice.KindRebalanceRecommendation, Subject: fmt.Sprint(i)})
		w.settle()
	}
	queue.ID, queue.Kind, queue.Deadline = "r", notice.KindRebalanceRecommendation, nil
	if _, err := w.Recorder().Record(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	all := w.Notices(instance)
	count := 0
	for _, n := range all {
		if n.Source == notice.SourceIMDS {
			count++
		}
	}
	if ruling, _ := notice.Ruling(all); ruling.ID != "q" || count > notice.MaxFromAgent {
		t.Errorf("%s rules, %d of the agent: %v", ruling.ID, count, w.IDs(instance))
	}
}

// Whatever an agent writes: once it stops, so do the writes of the source, and what the
// source remembers is bounded.
func TestNoInputCausesAWriteLoop(t *testing.T) {
	for seed := range uint64(100) {
		w, r := newWorld(t), rand.New(rand.NewPCG(seed, 7))
		kinds := []string{notice.KindSpotInterruption, notice.KindRebalanceRecommendation, notice.KindScheduledChange, notice.KindAutoScalingTermination, "InstanceStatus", ""}
		for range 5 {
			var notices []v1beta1.MetadataNotice
			for i := range r.IntN(9) {
				at := metav1.NewTime(start.Add(time.Duration(r.IntN(100)-50) * time.Hour * 100))
				n := v1beta1.MetadataNotice{ID: fmt.Sprint("imds/", i, r.IntN(3)), Kind: kinds[r.IntN(len(kinds))], Subject: fmt.Sprint(r.IntN(3)), Withdrawn: r.IntN(3) == 0}
				if r.IntN(2) == 0 {
					n.Deadline, n.IssueTime = &at, &at
				}
				notices = append(notices, n)
			}
			w.writes(func(s *v1beta1.NodeNoticeSpec) {
				if r.IntN(5) == 0 {
					s.InstanceID = "i-0bbbbbbbbbbbbbbbb"
				}
			}, notices...)
			w.settle()
		}
		w.Spent()
		for range 10 {
			w.Pass(resync)
			w.settle()
		}
		if _, writes := w.Spent(); writes > 0 {
			t.Errorf("seed %d: %d writes while the agent is silent", seed, writes)
		}
		if st := w.source.states[polltest.NodeName(instance)]; st.deduper.Remembered() > notice.MaxFromAgent {
			t.Errorf("seed %d: it remembers %d notices", seed, st.deduper.Remembered())
		}
		if ids := strings.Join(w.IDs("i-0bbbbbbbbbbbbbbbb"), " "); ids != "" {
			t.Errorf("seed %d: recorded of another instance: %s", seed, ids)
		}
	}
}
