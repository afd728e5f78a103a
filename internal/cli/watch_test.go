package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// inProgress returns an interruption that started half a minute ago.
func inProgress() *v1beta1.Interruption {
	in := interruption(spotNotice("n1", 30*time.Second))
	in.Status.NodeName, in.Status.Kind, in.Status.Phase = nodeName, "SpotInterruption", v1beta1.PhaseDraining
	happened(in, 30*time.Second, v1beta1.ReasonNoticeReceived, "SpotInterruption by sqs")
	happened(in, 29700*time.Millisecond, v1beta1.ReasonCordoned, "new pods are kept off")
	happened(in, 29500*time.Millisecond, v1beta1.ReasonEvicted, "asked shop/web-1 to stop")
	happened(in, 14*time.Second, v1beta1.ReasonPodTerminated, "shop/web-1 left")
	return in
}

// finished returns the same interruption, completed.
func finished(lost int32) *v1beta1.Interruption {
	in := inProgress()
	record.EnsureDrain(&in.Status).PodCounts.Total = 1
	complete(in, 0, 1, lost)
	happened(in, 0, v1beta1.ReasonCompleted, "1 of 1 pods moved, 0 lost")
	return in
}

func TestWatchOnce(t *testing.T) {
	other := interruption(spotNotice("n2", 5*time.Second))
	other.Name, other.UID, other.Spec.InstanceID, other.Spec.NodeName = instanceB, "uid-b", instanceB, otherNode
	happened(other, 5*time.Second, v1beta1.ReasonNoticeReceived, "SpotInterruption by sqs")
	for _, c := range []struct {
		name, wantErr string
		objects       []client.Object
		args          []string
	}{
		{name: "all", objects: []client.Object{inProgress(), other}},
		{name: "one", objects: []client.Object{inProgress(), other}, args: []string{otherNode}},
		{name: "json", objects: []client.Object{inProgress()}, args: []string{"-o", "json"}},
		{name: "none", wantErr: "no interruptions of rack7\n", objects: []client.Object{inProgress()}, args: []string{onPremNode}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, c.objects...)}
			r := h.run(t.Context(), append([]string{"watch", "--once"}, c.args...)...)
			if r.code != ExitOK || r.err != c.wantErr {
				t.Errorf("exit code %d, standard error %q", r.code, r.err)
			}
			golden(t, "watch-"+c.name+".golden", r.out)
		})
	}
}

// script is a cluster whose Interruptions go through states: the first in the
// list, then one per watch. If all is set, one watch delivers all the others.
type script struct {
	states []*v1beta1.Interruption
	all    bool
	lists  int
	fails  map[int]error // which list fails, and how
	at     int
}

func (s *script) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			s.lists++
			if err := s.fails[s.lists]; err != nil {
				return err
			}
			if all, ok := list.(*v1beta1.InterruptionList); ok && s.at < len(s.states) {
				all.Items = []v1beta1.Interruption{*s.states[s.at]}
				s.at++
			}
			return nil
		},
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(len(s.states), false)
			for first := s.at; s.at < len(s.states) && (s.all || s.at == first); s.at++ {
				w.Modify(s.states[s.at])
			}
			w.Stop()
			return w, nil
		},
	}
}

func TestWatchUntilDone(t *testing.T) {
	early := inProgress()
	early.Status.Timeline = early.Status.Timeline[:1]
	broken := errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")
	for _, c := range []struct {
		name   string
		script *script
		code   int
		err    string
	}{
		{"each entry is told once, over changes and broken watches",
			&script{states: []*v1beta1.Interruption{early, inProgress(), inProgress(), finished(0)}}, ExitOK, ""},
		{"a cluster that goes away is waited for",
			&script{states: []*v1beta1.Interruption{early, inProgress(), finished(0)}, fails: map[int]error{2: broken, 3: broken}}, ExitOK,
			"the cluster does not answer (listing interruptions: dial tcp 127.0.0.1:6443: connect: connection refused); retrying\nthe cluster answers again\n"},
		{"a lost pod is a failure", &script{states: []*v1beta1.Interruption{early, finished(2)}}, ExitFailed,
			"error: lost 2 pods: they were still on their node when its instance stopped\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &harness{t: t, cluster: fakeCluster(t, c.script.funcs())}
				r := h.run(t.Context(), "watch", "--until-done", "-o", "json")
				if r.code != c.code || r.err != c.err {
					t.Errorf("exit code %d, standard error %q", r.code, r.err)
				}
				var got []string
				for line := range strings.Lines(r.out) {
					var e entry
					if err := json.Unmarshal([]byte(line), &e); err != nil {
						t.Fatalf("%q: %v", line, err)
					}
					got = append(got, e.Reason)
				}
				want := []string{"NoticeReceived", "Cordoned", "Evicted", "PodTerminated", "Completed"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWatchEndsOnCtrlC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &script{states: []*v1beta1.Interruption{inProgress()}}
		h := &harness{t: t, cluster: fakeCluster(t, s.funcs())}
		if r := h.run(ctx, "watch"); r.code != ExitInterrupted || r.err != "interrupted\n" {
			t.Errorf("exit code %d, standard error %q", r.code, r.err)
		}
	})
}

func TestIsSettled(t *testing.T) {
	looked := func(phase v1beta1.Phase, last string, notices ...v1beta1.Notice) *v1beta1.Interruption {
		in := interruption(notices...)
		in.Status.Phase, in.Status.LastNoticeID = phase, last
		return in
	}
	reopened := finished(0)
	reopened.Spec.Notices = append(reopened.Spec.Notices, spotNotice("n2", -time.Second))
	reopened.Status.LastNoticeID = "n2"
	for _, c := range []struct {
		name string
		in   *v1beta1.Interruption
		want bool
	}{
		{"no one has looked", interruption(spotNotice("n1", 0)), false},
		{"pods are being moved", looked(v1beta1.PhaseDraining, "n1", spotNotice("n1", 0)), false},
		{"the node is empty", looked(v1beta1.PhaseDrained, "n1", spotNotice("n1", 0)), true},
		{"no more than told", looked(v1beta1.PhaseNotified, "n1", spotNotice("n1", 0)), true},
		{"told of one, and another has come", looked(v1beta1.PhaseNotified, "n1", spotNotice("n1", 0), spotNotice("n2", 0)), false},
		{"completed", finished(0), true},
		{"completed, and another has come", reopened, false},
	} {
		if got := record.IsSettled(c.in); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReasonsHaveTheirStyle(t *testing.T) {
	for style, reasons := range map[terminal.Style][]string{
		terminal.Bad:   {v1beta1.ReasonPodLost, v1beta1.ReasonHookFailed},
		terminal.Warn:  {v1beta1.ReasonAwaitingApproval, v1beta1.ReasonOnHold, v1beta1.ReasonQueued, v1beta1.ReasonNotifyFailed},
		terminal.Good:  {v1beta1.ReasonApproved, v1beta1.ReasonSurged, v1beta1.ReasonDrained},
		terminal.Plain: {v1beta1.ReasonEvicted, v1beta1.ReasonHookStarted, "AReasonOfALaterRelease"},
	} {
		for _, reason := range reasons {
			if got := styleOf(reason); got != style {
				t.Errorf("%s looks like %q, want %q", reason, got, style)
			}
		}
	}
}
