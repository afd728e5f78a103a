package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// noticed is when the notice arrived.
var noticed = time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)

func after(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noticed.Add(d)) }

func ms(d time.Duration) view.Millis { return view.At(noticed.Add(d)) }

// spot is an interruption of a node with three pods: one left, one leaves and one waits.
func spot() *v1beta1.Interruption {
	asked, grace := metav1.NewTime(noticed.Add(2*time.Second)), int64(30)
	call, gone := metav1.NewTime(noticed.Add(80*time.Second)), metav1.NewTime(noticed.Add(5*time.Second))
	entry := func(d time.Duration, reason, text string) v1beta1.TimelineEntry {
		return v1beta1.TimelineEntry{Time: after(d), Reason: reason, Message: text}
	}
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: "i-1"},
		Spec: v1beta1.InterruptionSpec{InstanceID: "i-1", NodeName: "n1", Notices: []v1beta1.Notice{{
			ID: "a", Kind: notice.KindSpotInterruption, Source: "sqs", ReceivedTime: after(0), Description: "EC2 takes it back",
		}}},
		Status: v1beta1.InterruptionStatus{
			Phase: v1beta1.PhaseDraining, Kind: notice.KindSpotInterruption, LastNoticeID: "a",
			Decision: &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "web", Message: "rule spot says Drain"},
			Deadline: notice.At(noticed.Add(2*time.Minute), v1beta1.DeadlineHard),
			Timeline: []v1beta1.TimelineEntry{
				entry(time.Second, v1beta1.ReasonCordoned, "cordoned"),
				entry(2*time.Second, v1beta1.ReasonEvicted, "goes now (2 pods: shop/web-1, shop/web-2)"),
				entry(5*time.Second, v1beta1.ReasonPodTerminated, "left shop/web-1 (3s of 30s grace)"),
			},
			Conditions: []metav1.Condition{
				{Type: v1beta1.ConditionCordoned, Status: "True", LastTransitionTime: metav1.NewTime(noticed.Add(time.Second))},
				{Type: v1beta1.ConditionReady, Status: "False", Message: "waits for pods"},
			},
			Drain: &v1beta1.DrainStatus{
				PodCounts: v1beta1.PodCounts{Total: 3, Moved: 1, Leaving: 1, Waiting: 1},
				Pods: []v1beta1.PodStatus{
					{Namespace: "shop", Name: "web-2", State: "Leaving", Message: "goes now", EvictionTime: &asked, GraceSeconds: &grace},
					{Namespace: "shop", Name: "db-0", State: "Waiting", Message: "waits for budget shop/db", LastCallTime: &call},
					{Namespace: "shop", Name: "web-1", State: "Left", Message: "goes now", EvictionTime: &asked, DepartureTime: &gone, GraceSeconds: &grace},
				},
			},
		},
	}
}

func TestRow(t *testing.T) {
	want := view.Row{
		Name: "i-1", Node: "n1", Instance: "i-1", Kind: "SpotInterruption", Action: "Drain", Phase: "Draining", Policy: "web",
		Deadline: ms(2 * time.Minute), DeadlineType: "Hard", Pods: v1beta1.PodCounts{Total: 3, Moved: 1, Leaving: 1, Waiting: 1},
		WaitsFor: "shop/db-0 waits for budget shop/db", Noticed: ms(0),
	}
	if diff := cmp.Diff(want, view.NewRow(spot())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTones(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.Interruption)
		want   view.Tone
	}{
		"draining":        {func(*v1beta1.Interruption) {}, view.Plain},
		"drained":         {func(in *v1beta1.Interruption) { in.Status.Phase = v1beta1.PhaseDrained }, view.Good},
		"not seen yet":    {func(in *v1beta1.Interruption) { in.Status.Phase, in.Status.LastNoticeID = v1beta1.PhaseDrained, "" }, view.Plain},
		"awaits approval": {func(in *v1beta1.Interruption) { in.Status.Phase = v1beta1.PhaseAwaitingApproval }, view.Warn},
		"drained, one lost": {func(in *v1beta1.Interruption) {
			in.Status.Phase, in.Status.Drain.PodCounts.Lost = v1beta1.PhaseDrained, 1
		}, view.Bad},
	} {
		in := spot()
		c.change(in)
		if got := view.NewRow(in).Tone; got != c.want {
			t.Errorf("%s: tone %q, want %q", name, got, c.want)
		}
	}
}

func TestDetailHasLaneForEachPod(t *testing.T) {
	d := view.NewDetail(spot(), "lifeboat", noticed.Add(10*time.Second))
	s := func(is string, from, to time.Duration) view.Segment {
		segment := view.Segment{Is: is, From: ms(from)}
		if to > 0 {
			segment.To = ms(to)
		}
		return segment
	}
	m := func(is string, at time.Duration) view.Mark { return view.Mark{Is: is, At: ms(at)} }
	want := []view.Lane{
		{Of: "node", Label: "node n1", State: "Draining", Reason: "waits for pods", Text: "noticed; cordoned at +1s", Segments: []view.Segment{s("runs", 0, time.Second), s("leaves", time.Second, 0)}},
		{
			Of: "pod", Label: "shop/web-1", State: "Left", Reason: "goes now", Tone: view.Good, Text: "asked to leave at +2s; grace 30s; gone at +5s",
			Segments: []view.Segment{s("waits", 0, 2*time.Second), s("grace", 5*time.Second, 32*time.Second), s("leaves", 2*time.Second, 5*time.Second)},
			Marks:    []view.Mark{m("asked", 2*time.Second), m("gone", 5*time.Second)},
		},
		{
			Of: "pod", Label: "shop/web-2", State: "Leaving", Reason: "goes now", Text: "asked to leave at +2s; grace 30s",
			Segments: []view.Segment{s("waits", 0, 2*time.Second), s("grace", 2*time.Second, 32*time.Second), s("leaves", 2*time.Second, 0)},
			Marks:    []view.Mark{m("asked", 2*time.Second)},
		},
		{
			Of: "pod", Label: "shop/db-0", State: "Waiting", Reason: "waits for budget shop/db", Text: "not asked to leave yet; last call at +1m20s",
			Segments: []view.Segment{s("waits", 0, 0)}, Marks: []view.Mark{m("lastcall", 80*time.Second)},
		},
	}
	if diff := cmp.Diff(want, d.Lanes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	counts := []view.Count{{At: ms(0), Serving: 3}, {At: ms(2 * time.Second), Serving: 1, Leaving: 2}, {At: ms(5 * time.Second), Serving: 1, Leaving: 1}}
	if diff := cmp.Diff(counts, d.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if d.From != ms(0) || d.To != ms(2*time.Minute) || !d.DeadlineOnAxis || d.MorePods != 0 {
		t.Errorf("axis %d to %d, deadline on it %v, %d more pods", d.From-ms(0), d.To-ms(0), d.DeadlineOnAxis, d.MorePods)
	}
}

func TestDistantDeadlineIsNotOnAxis(t *testing.T) {
	in := spot()
	in.Status.Deadline = notice.At(noticed.Add(12*24*time.Hour), v1beta1.DeadlineSoft)
	d := view.NewDetail(in, "lifeboat", noticed.Add(time.Minute))
	if d.DeadlineOnAxis || d.To != ms(time.Minute) {
		t.Errorf("deadline on the axis %v, which ends %d ms after the notice", d.DeadlineOnAxis, d.To-ms(0))
	}
	for _, l := range d.Lanes {
		for _, mark := range l.Marks {
			if mark.At > d.To {
				t.Errorf("lane %s has the mark %s after the end of the axis", l.Label, mark.Is)
			}
		}
	}
}

// The record names at most ten of the pods that left at the same time.
func TestPodsWithoutTimesAreCounted(t *testing.T) {
	in := spot()
	in.Status.Drain.PodCounts = v1beta1.PodCounts{Total: 9, Moved: 7, Leaving: 1, Waiting: 1}
	in.Status.Timeline[2].Message = "left shop/web-1 (3s of 30s grace) and 6 more"
	if d := view.NewDetail(in, "lifeboat", noticed); d.MorePods != 6 {
		t.Errorf("%d more pods, want 6", d.MorePods)
	}
}

func TestReplacementAndHookHaveLanes(t *testing.T) {
	in := spot()
	start, ordered, ready := after(0), after(time.Second), after(40*time.Second)
	in.Status.Drain.Replacement = &v1beta1.ReplacementStatus{Phase: v1beta1.ReplacementReady, NodeName: "n2", StartTime: &start, OrderTime: &ordered, ReadyTime: &ready}
	in.Status.Drain.Hooks = []v1beta1.HookStatus{{Name: "backup", State: v1beta1.HookFailed, Try: 2, StartTime: start, CompletionTime: &ordered, Message: "exit 1"}}
	var texts []string
	for _, l := range view.NewDetail(in, "lifeboat", noticed).Lanes[1:3] {
		texts = append(texts, fmt.Sprintf("%s %s %s: %s", l.Label, l.State, l.Tone, l.Text))
	}
	want := []string{"replacement n2 Ready good: needed, requested after 1s, ready after 40s", "hook backup Failed bad: try 2, took 1s"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummaryCountsWhatIsUnderWay(t *testing.T) {
	over := spot()
	recordtest.Complete(over, after(time.Minute).Time, "a")
	over.Status.Drain.PodCounts.Lost = 5
	got := view.Summarize([]*v1beta1.Interruption{spot(), over}, noticed)
	want := view.Summary{Interruptions: 1, Phases: map[string]int{"Draining": 1}, Nearest: ms(2 * time.Minute), NearestType: "Hard", PodsWaiting: 1, PodsLeaving: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWiringShowsProblemsFirst(t *testing.T) {
	group := func(name, status string) view.Group {
		g := &v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if status != "" {
			g.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionStatus(status), Message: "m"}}
		}
		return view.NewGroup(g)
	}
	policy := func(name, status string) view.Policy {
		p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionStatus(status), Message: "m"}}
		return view.NewPolicy(p)
	}
	w := view.Wiring{Groups: []view.Group{group("a", "True"), group("b", "False"), group("c", "")}, Policies: []view.Policy{policy("p", "True"), policy("q", "False")}}
	w.Sort()
	var order []string
	for _, g := range w.Groups {
		order = append(order, g.Name+" "+string(g.Tone))
	}
	for _, p := range w.Policies {
		order = append(order, p.Name+" "+string(p.Tone))
	}
	if diff := cmp.Diff([]string{"b bad", "c warn", "a good", "q bad", "p good"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
