package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// manyInterruptions returns enough interruptions for a full table.
func manyInterruptions() []*v1beta1.Interruption {
	named := func(in *v1beta1.Interruption, node string, phase v1beta1.Phase, waits string) *v1beta1.Interruption {
		in = in.DeepCopy()
		in.UID, in.Name, in.Spec.NodeName, in.Status.NodeName, in.Status.Phase = types.UID(node), "i-"+node, node, node, phase
		in.Status.LastNoticeID, in.Status.Kind, in.Status.Deadline = in.Spec.Notices[0].ID, in.Spec.Notices[0].Kind, in.Spec.Notices[0].Deadline
		in.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain}
		in.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaiting, Message: waits}}
		return in
	}
	spot, stop := interruption(spotNotice("n1", 20*time.Second)), stopping(26*time.Hour)
	draining := named(spot, "b", v1beta1.PhaseDraining, "2 pods are leaving, 1 wait")
	record.EnsureDrain(&draining.Status).PodCounts = v1beta1.PodCounts{Total: 5, Moved: 2, Leaving: 2, Waiting: 1}
	record.EnsureDrain(&draining.Status).Pods = []v1beta1.PodStatus{
		{Namespace: "shop", Name: "web-1", State: "Leaving", Message: "leaving: it was asked to stop"},
		{Namespace: "shop", Name: "db-0", State: "Waiting", Message: "waits: PodDisruptionBudget db-pdb allows 0 disruptions"},
	}
	late := named(interruption(spotNotice("n1", 110*time.Second)), "a", v1beta1.PhaseDraining, "1 pods are leaving, 0 wait")
	record.EnsureDrain(&late.Status).PodCounts = v1beta1.PodCounts{Total: 3, Moved: 2, Leaving: 1}
	done := named(spot, "c", v1beta1.PhaseCompleted, "")
	complete(done, time.Second, 4, 1)
	heard := interruption(spotNotice("n1", 0))
	heard.UID, heard.Spec.NodeName = "z", "z"
	return []*v1beta1.Interruption{
		done, named(stop, "e", v1beta1.PhaseQueued, "waits for its turn: policy databases drains 1 nodes at a time, and 1 are being drained"),
		draining, named(stop, "d", v1beta1.PhaseAwaitingApproval, "waits for approval: `lifeboat approve d`; without it nothing is done"), late, heard,
	}
}

func TestDrawTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream terminal.Stream
		of     []*v1beta1.Interruption
		note   string
	}{
		{"wide", terminal.Stream{TTY: true, Width: 160, Height: 40}, manyInterruptions(), ""},
		{"narrow", terminal.Stream{TTY: true, Width: 80, Height: 7}, manyInterruptions(), "the cluster does not answer (listing interruptions: dial tcp 127.0.0.1:6443: connection refused); waiting for it"},
		{"coloured", terminal.Stream{TTY: true, Color: true, Width: 100, Height: 40}, manyInterruptions()[:3], ""},
		{"none", terminal.Stream{TTY: true, Width: 80, Height: 24}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.stream.Writer = &out
			c.stream.Printf("%s", drawTable(c.stream, c.of, c.note, clock))
			got := out.String()
			golden(t, "watchtable-"+c.name+".golden", got)
			if lines := strings.Count(got, "\n"); lines >= c.stream.Height {
				t.Errorf("%d lines on a terminal of %d", lines, c.stream.Height)
			}
			if c.stream.Color {
				return
			}
			for line := range strings.Lines(got) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > c.stream.Width {
					t.Errorf("a line has %d columns on a terminal of %d: %s", n, c.stream.Width, line)
				}
			}
		})
	}
}

// screen returns what a terminal shows after the output was written.
func screen(t *testing.T, written string) []string {
	t.Helper()
	lines, at := []string{""}, 0
	for written != "" {
		switch rest, ok := strings.CutPrefix(written, "\x1b["); {
		case ok && rest[0] == 'K':
			lines[at], written = "", rest[1:]
		case ok && rest[0] == 'J':
			lines, written = append(lines[:at], ""), rest[1:]
		case ok && rest[1] == 'A':
			at, written = at-int(rest[0]-'0'), rest[2:]
			if at < 0 {
				t.Fatal("the cursor left the screen")
			}
		case ok:
			t.Fatalf("a sequence that no one knows: %q", rest)
		case written[0] == '\r':
			written = written[1:]
		case written[0] == '\n':
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
			written = written[1:]
		default:
			lines[at], written = lines[at]+written[:1], written[1:]
		}
	}
	return lines
}

// TestWatchTable plays an interruption. The table is redrawn in place at each
// change and each second.
func TestWatchTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{states: []*v1beta1.Interruption{nil, nil}, all: true}
		under := manyInterruptions()[2]
		s.states[0], s.states[1] = under, under.DeepCopy()
		record.EnsureDrain(&s.states[1].Status).PodCounts.Moved = 4
		var out bytes.Buffer
		h := &harness{t: t, cluster: fakeCluster(t, s.funcs()), setup: func(s *session) {
			begun := time.Now()
			s.now = func() time.Time { return clock.Add(time.Since(begun)) }
			s.out = terminal.Stream{Writer: &out, TTY: true, Width: 120, Height: 30}
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		if r := h.run(ctx, "watch", "--table"); r.code != ExitInterrupted {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
		want := []string{
			"NODE  KIND              ACTION  PHASE     DEADLINE  MOVED  WAITING  WAITS FOR",
			"b     SpotInterruption  Drain   Draining  in 1m37s  4/5    1",
			"    shop/db-0 waits: PodDisruptionBudget db-pdb allows 0 disruptions",
			"",
		}
		if diff := cmp.Diff(want, screen(t, out.String())); diff != "" {
			t.Errorf("the screen in the end (-want +got):\n%s", diff)
		}
		for _, once := range []string{"in 1m40s", "in 1m39s", "in 1m38s", " 2/5 "} {
			if !strings.Contains(out.String(), once) {
				t.Errorf("it was never drawn with %q", once)
			}
		}
	})
}

func TestWatchTableEndsWhenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{states: []*v1beta1.Interruption{inProgress(), finished(1)}, all: true}
		var out bytes.Buffer
		h := &harness{t: t, cluster: fakeCluster(t, s.funcs()), setup: func(s *session) {
			s.out = terminal.Stream{Writer: &out, TTY: true, Width: 120, Height: 30}
		}}
		r := h.run(t.Context(), "watch", "--table", "--until-done")
		if r.code != ExitFailed || !strings.Contains(r.err, "lost 1 pod:") {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
		if last := strings.Join(screen(t, out.String()), "\n"); !strings.Contains(last, "Completed") || !strings.Contains(last, "1/2") {
			t.Errorf("the screen in the end:\n%s", last)
		}
	})
}

func TestWatchTableNeedsATerminal(t *testing.T) {
	for _, args := range [][]string{{"--table"}, {"--table", "-o", "json"}} {
		h := &harness{t: t, cluster: fakeCluster(t, (&script{}).funcs())}
		if r := h.run(t.Context(), append([]string{"watch"}, args...)...); r.code != ExitUsage || !strings.Contains(r.err, "remove ") {
			t.Errorf("%v: exit code %d: %s", args, r.code, r.err)
		}
	}
}

// A queued interruption is not settled. One that waits for a person can wait
// for days.
func TestWaitingIsNotSettled(t *testing.T) {
	for _, c := range []struct {
		phase              v1beta1.Phase
		settled, postponed bool
	}{
		{v1beta1.PhaseQueued, false, false},
		{v1beta1.PhaseAwaitingApproval, false, true},
		{v1beta1.PhaseScheduled, false, true},
		{v1beta1.PhaseDrained, true, false},
	} {
		in := manyInterruptions()[1]
		in.Status.Phase = c.phase
		if record.IsSettled(in) != c.settled || isPostponed(in) != c.postponed {
			t.Errorf("%s: settled %v, postponed %v", c.phase, record.IsSettled(in), isPostponed(in))
		}
		in.Spec.Notices = append(in.Spec.Notices, v1beta1.Notice{ID: "new", Kind: notice.KindSpotInterruption})
		if record.IsSettled(in) || isPostponed(in) {
			t.Errorf("%s, and another notice has come: settled %v, postponed %v", c.phase, record.IsSettled(in), isPostponed(in))
		}
	}
}
