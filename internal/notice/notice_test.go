package notice_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func after(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }

// received builds a notice of a time, in seconds after noon, received a second
// later.
func received(id string, at int, change ...func(*v1beta1.Notice)) v1beta1.Notice {
	n := v1beta1.Notice{
		ID: id, Kind: notice.KindRebalanceRecommendation, Source: "sqs",
		Time: metav1.NewTime(after(at)), ReceivedTime: metav1.NewMicroTime(after(at + 1)),
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func hard(at int) func(*v1beta1.Notice) {
	return func(n *v1beta1.Notice) {
		n.Kind, n.Deadline = notice.KindSpotInterruption, notice.At(after(at), v1beta1.DeadlineHard)
	}
}

func soft(at int) func(*v1beta1.Notice) {
	return func(n *v1beta1.Notice) { n.Deadline = notice.At(after(at), v1beta1.DeadlineSoft) }
}

func estimated(at int) func(*v1beta1.Notice) {
	return func(n *v1beta1.Notice) {
		n.Kind, n.InstanceState = notice.KindInstanceStateChange, notice.StateShuttingDown
		n.Deadline = notice.At(after(at), v1beta1.DeadlineEstimated)
	}
}

func state(s string) func(*v1beta1.Notice) {
	return func(n *v1beta1.Notice) { n.Kind, n.InstanceState = notice.KindInstanceStateChange, s }
}

func ids(notices []v1beta1.Notice) []string {
	var all []string
	for _, n := range notices {
		all = append(all, n.ID)
	}
	return all
}

// many returns n notices with nothing special about them: r0, r1, …
func many(n int) []v1beta1.Notice {
	var all []v1beta1.Notice
	for i := range n {
		all = append(all, received(fmt.Sprintf("r%d", i), i))
	}
	return all
}

func TestJoin(t *testing.T) {
	const share = notice.MaxPerInstance - notice.MaxFromAgent
	full := many(share)
	ruled := slices.Concat([]v1beta1.Notice{received("spot", 0, hard(120))}, many(share-1))
	for _, c := range []struct {
		name     string
		recorded []v1beta1.Notice
		joins    v1beta1.Notice
		want     []string
		changed  bool
	}{
		{"the first notice", nil, received("a", 0), []string{"a"}, true},
		{"another is added last, also if it is older", []v1beta1.Notice{received("a", 5)}, received("b", 0), []string{"a", "b"}, true},
		{"a repeat changes nothing, whatever else it says", []v1beta1.Notice{received("a", 0), received("b", 1)}, received("a", 9, hard(1)), []string{"a", "b"}, false},
		{"the last that fits", full[:share-1], received("last", 99), append(ids(full[:share-1]), "last"), true},
		{"where it is full the oldest makes room", full, received("new", 99), append(ids(full[1:]), "new"), true},
		{"where it is full the one that rules stays", ruled, received("new", 99), append(append([]string{"spot"}, ids(ruled[2:])...), "new"), true},
		{"where it is full the newest stays, even if it rules", full, received("spot", 99, hard(120)), append(ids(full[1:]), "spot"), true},
		{"a repeat changes nothing where it is full", full, full[3], ids(full), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ids(c.recorded)
			got, changed := notice.Join(c.recorded, c.joins)
			if changed != c.changed {
				t.Errorf("changed: %t", changed)
			}
			if diff := cmp.Diff(c.want, ids(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, ids(c.recorded)); diff != "" {
				t.Errorf("Join changed what it was given (-before +after)\n%s", diff)
			}
		})
	}
}

func TestJoinDoesNotModifyArguments(t *testing.T) {
	backing := append(make([]v1beta1.Notice, 0, 4), received("a", 0))
	first, _ := notice.Join(backing, received("b", 1))
	second, _ := notice.Join(backing, received("c", 2))
	if diff := cmp.Diff([][]string{{"a", "b"}, {"a", "c"}}, [][]string{ids(first), ids(second)}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRuling(t *testing.T) {
	for _, c := range []struct {
		name    string
		notices []v1beta1.Notice
		want    string // empty: none
	}{
		{name: "none of none"},
		{name: "the only one", notices: []v1beta1.Notice{received("a", 0)}, want: "a"},
		{name: "the newest of those without a deadline", notices: []v1beta1.Notice{received("a", 0), received("c", 2), received("b", 1)}, want: "c"},
		{name: "a soft deadline before none", notices: []v1beta1.Notice{received("a", 0, soft(900)), received("b", 1)}, want: "a"},
		{name: "the earliest soft deadline", notices: []v1beta1.Notice{received("a", 0, soft(900)), received("b", 1, soft(600)), received("c", 2, soft(800))}, want: "b"},
		{name: "a hard deadline before an earlier soft one", notices: []v1beta1.Notice{received("a", 0, soft(60)), received("b", 1, hard(120))}, want: "b"},
		{name: "the earliest hard deadline", notices: []v1beta1.Notice{received("a", 0, hard(120)), received("b", 1, hard(90))}, want: "b"},
		{name: "of equal deadlines the newer notice", notices: []v1beta1.Notice{received("b", 1, hard(120)), received("a", 0, hard(120))}, want: "b"},
		{name: "stopped before any deadline", notices: []v1beta1.Notice{received("a", 0, state(notice.StateStopped)), received("b", 1, hard(1))}, want: "a"},
		{name: "terminated before any deadline", notices: []v1beta1.Notice{received("b", 1, hard(1)), received("a", 0, state(notice.StateTerminated))}, want: "a"},
		{name: "stopping counts by its deadline", notices: []v1beta1.Notice{received("a", 0, state(notice.StateStopping), func(n *v1beta1.Notice) { n.Deadline = notice.At(after(0), v1beta1.DeadlineHard) }), received("b", 1, hard(120))}, want: "a"},
		{name: "an estimated end before a later hard deadline", notices: []v1beta1.Notice{received("a", 0, estimated(120)), received("b", 1, hard(180))}, want: "a"},
		{name: "a hard deadline before a later estimated end", notices: []v1beta1.Notice{received("a", 0, estimated(120)), received("b", 1, hard(90))}, want: "b"},
		{name: "a hard deadline before an estimated end at the same time", notices: []v1beta1.Notice{received("b", 1, hard(120)), received("a", 2, estimated(120))}, want: "b"},
		{name: "an estimated end before an earlier soft deadline", notices: []v1beta1.Notice{received("a", 0, soft(60)), received("b", 1, estimated(120))}, want: "b"},
		{name: "a state without the kind is not one", notices: []v1beta1.Notice{received("a", 0, func(n *v1beta1.Notice) { n.InstanceState = notice.StateTerminated }), received("b", 1)}, want: "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := notice.Ruling(c.notices)
			if got.ID != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %t; want %q", got.ID, ok, c.want)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name    string
		notices []v1beta1.Notice
		want    *v1beta1.Deadline
	}{
		{name: "none of none"},
		{name: "none where no notice has one", notices: []v1beta1.Notice{received("a", 0)}},
		{name: "the earliest soft one", notices: []v1beta1.Notice{received("a", 0, soft(900)), received("b", 0, soft(600))}, want: notice.At(after(600), v1beta1.DeadlineSoft)},
		{name: "the earliest firm one", notices: []v1beta1.Notice{received("a", 0, soft(60)), received("b", 0, hard(130)), received("c", 0, estimated(120))}, want: notice.At(after(120), v1beta1.DeadlineEstimated)},
		{name: "an estimate counts no more once the end is known", notices: []v1beta1.Notice{received("a", 0, estimated(120)), received("b", 200, hard(200), state(notice.StateTerminated))}, want: notice.At(after(200), v1beta1.DeadlineHard)},
		{name: "a hard one before an earlier soft one", notices: []v1beta1.Notice{received("a", 0, soft(60)), received("b", 0, hard(120)), received("c", 0, soft(30))}, want: notice.At(after(120), v1beta1.DeadlineHard)},
		{name: "the earliest hard one", notices: []v1beta1.Notice{received("a", 0, hard(120)), received("b", 0, hard(90)), received("c", 0, hard(110))}, want: notice.At(after(90), v1beta1.DeadlineHard)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, notice.Deadline(c.notices)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDeadlineIsACopy(t *testing.T) {
	notices := []v1beta1.Notice{received("a", 0, hard(120))}
	notice.Deadline(notices).Type = v1beta1.DeadlineSoft
	if notices[0].Deadline.Type != v1beta1.DeadlineHard {
		t.Error("changing the answer changed the notice")
	}
}

func TestInstanceGone(t *testing.T) {
	for s, want := range map[string]bool{
		notice.StateStopped: true, notice.StateTerminated: true,
		notice.StateStopping: false, notice.StateShuttingDown: false, "running": false, "": false,
	} {
		n := received("a", 0, state(s))
		if got := notice.InstanceGone([]v1beta1.Notice{received("b", 0, hard(1)), n}); got != want {
			t.Errorf("%q: %t", s, got)
		}
		n.Withdrawn = true
		if notice.InstanceGone([]v1beta1.Notice{n}) {
			t.Errorf("%q: gone by a notice that does not count", s)
		}
		n.Withdrawn = false
		n.Kind = notice.KindSpotInterruption
		if notice.InstanceGone([]v1beta1.Notice{n}) {
			t.Errorf("%q: gone by a notice of another kind", s)
		}
	}
}

func TestKindsAreSorted(t *testing.T) {
	if kinds := notice.Kinds(); !slices.IsSorted(kinds) || len(slices.Compact(kinds)) != 10 {
		t.Errorf("kinds %v", kinds)
	}
}

// The record must not depend on the order of notices and repeats.
func TestArrivalOrderDoesNotChangeDeadline(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var all []v1beta1.Notice
		for i := range 1 + r.IntN(notice.MaxPerInstance-notice.MaxFromAgent) {
			all = append(all, anyNotice(r, i))
		}
		record := func() []v1beta1.Notice {
			var recorded []v1beta1.Notice
			for _, n := range all {
				recorded, _ = notice.Join(recorded, n)
				recorded, _ = notice.Join(recorded, all[r.IntN(len(all))])
			}
			return recorded
		}
		first := record()
		if len(first) != len(all) {
			t.Fatalf("seed %d: %d of %d notices recorded", seed, len(first), len(all))
		}
		for range 5 {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			then := record()
			if diff := cmp.Diff(notice.Deadline(first), notice.Deadline(then)); diff != "" {
				t.Fatalf("seed %d: deadline (-first +then)\n%s", seed, diff)
			}
			if a, b := notice.InstanceGone(first), notice.InstanceGone(then); a != b {
				t.Fatalf("seed %d: gone %t, then %t", seed, a, b)
			}
			a, ok := notice.Ruling(first)
			if b, okThen := notice.Ruling(then); ok != okThen || a.ID != b.ID {
				t.Fatalf("seed %d: %s rules, then %s", seed, a.ID, b.ID)
			}
		}
	}
}

// The earliest hard deadline must never be dropped from a full record.
func TestFullRecordKeepsDeadline(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var recorded, all []v1beta1.Notice
		for i := range 100 {
			n := anyNotice(r, i)
			n.Kind = notice.KindSpotInterruption // none that says it is gone
			all = append(all, n)
			recorded, _ = notice.Join(recorded, n)
			if len(recorded) > notice.MaxPerInstance {
				t.Fatalf("seed %d: %d notices recorded", seed, len(recorded))
			}
			if diff := cmp.Diff(notice.Deadline(all), notice.Deadline(recorded)); diff != "" {
				t.Fatalf("seed %d: after %d notices (-all +recorded)\n%s", seed, len(all), diff)
			}
		}
	}
}

func anyNotice(r *rand.Rand, i int) v1beta1.Notice {
	n := received(fmt.Sprintf("n%d", i), i) // no two have the same time: the newer one decides
	switch r.IntN(4) {
	case 0:
		hard(r.IntN(20))(&n)
	case 1:
		soft(r.IntN(20))(&n)
	case 2:
		if r.IntN(10) == 0 {
			state(notice.StateTerminated)(&n)
		}
	}
	return n
}

func TestOnlyEndedInstancesAreGone(t *testing.T) {
	for _, c := range []struct {
		state string
		gone  bool
		want  *v1beta1.Deadline
	}{
		{"running", false, nil},
		{notice.StateStopping, false, notice.At(after(120), v1beta1.DeadlineEstimated)},
		{notice.StateShuttingDown, false, notice.At(after(120), v1beta1.DeadlineEstimated)},
		{notice.StateStopped, true, notice.At(noon, v1beta1.DeadlineHard)},
		{notice.StateTerminated, true, notice.At(noon, v1beta1.DeadlineHard)},
	} {
		t.Run(c.state, func(t *testing.T) {
			d := notice.ShutdownDeadline(c.state, noon)
			if diff := cmp.Diff(c.want, d); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if gone := notice.InstanceGone([]v1beta1.Notice{received("a", 0, state(c.state))}); gone != c.gone {
				t.Errorf("gone: %t", gone)
			}
			if notice.IsFirm(d) != (c.want != nil) || notice.IsEstimated(d) != (c.want != nil && !c.gone) {
				t.Errorf("firm %t, estimated %t", notice.IsFirm(d), notice.IsEstimated(d))
			}
		})
	}
}
