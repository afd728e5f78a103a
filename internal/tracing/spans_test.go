package tracing_test

import (
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
	"github.com/lifeboat-dev/lifeboat/internal/tracing"
)

var start = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

func at(seconds int) metav1.MicroTime {
	return metav1.NewMicroTime(start.Add(time.Duration(seconds) * time.Second))
}

func ref(seconds int) *metav1.MicroTime { t := at(seconds); return &t }

func entry(seconds int, reason, message string) v1beta1.TimelineEntry {
	return v1beta1.TimelineEntry{Time: at(seconds), Reason: reason, Message: message}
}

// left is a pod that left within its grace, and lost one that did not.
func left(namespace, name string, asked, gone int) v1beta1.PodStatus {
	grace := int64(30)
	return v1beta1.PodStatus{
		Namespace: namespace, Name: name, State: v1beta1.PodLeft, EvictionTime: second(asked), DepartureTime: second(gone), GraceSeconds: &grace,
	}
}

func lost(namespace, name string, gone int) v1beta1.PodStatus {
	return v1beta1.PodStatus{
		Namespace: namespace, Name: name, State: v1beta1.PodLost, Message: "it was still there when its instance went", DepartureTime: second(gone),
	}
}

func second(n int) *metav1.Time { return &metav1.Time{Time: at(n).Time} }

// drained is a spot interruption with a replacement, a hook and two pods, of which one was lost.
func drained() *v1beta1.Interruption {
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-1", UID: "0a1b2c3d-0000-4000-8000-00000000beef"}}
	in.Spec.InstanceID, in.Spec.NodeName = "i-1", "node-a"
	in.Spec.Notices = []v1beta1.Notice{{ID: "n", Kind: "SpotInterruption", Source: "sqs", ReceivedTime: at(0)}}
	in.Status = v1beta1.InterruptionStatus{
		Phase: v1beta1.PhaseCompleted, Kind: "SpotInterruption", NodeName: "node-a", CompletionTime: ref(120),
		Decision: &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "web", Rule: "spot", Message: "policy web"},
		Deadline: &v1beta1.Deadline{Time: metav1.NewTime(start.Add(2 * time.Minute)), Type: v1beta1.DeadlineHard},
		Drain: &v1beta1.DrainStatus{
			StartTime: ref(2), PodCounts: v1beta1.PodCounts{Total: 3, Moved: 2, Lost: 1},
			Pods:        []v1beta1.PodStatus{left("shop", "web-1", 41, 44), lost("db", "pg-0", 110)},
			Hooks:       []v1beta1.HookStatus{{Name: "dump", State: v1beta1.HookFailed, Try: 2, StartTime: at(3), CompletionTime: ref(9), Message: "exit 1"}},
			Replacement: &v1beta1.ReplacementStatus{Phase: v1beta1.ReplacementReady, StartTime: ref(2), ReadyTime: ref(40), NodeName: "node-b", Tries: 1},
		},
		Timeline: []v1beta1.TimelineEntry{
			entry(-900, v1beta1.ReasonCordoned, "of an earlier interruption"),
			entry(0, v1beta1.ReasonNoticeReceived, "SpotInterruption by sqs"),
			entry(1, v1beta1.ReasonDecided, "policy web"),
			entry(1, v1beta1.ReasonAwaitingApproval, "waits for a person"),
			entry(2, v1beta1.ReasonCordoned, "the node takes no new pods"),
			entry(41, v1beta1.ReasonEvicted, "shop/web-1 goes now: nothing holds it"),
			entry(44, v1beta1.ReasonPodTerminated, "left shop/web-1 (3s of 30s grace)"),
			entry(110, v1beta1.ReasonPodLost, "was still there when its instance went: db/pg-0"),
			entry(112, v1beta1.ReasonDrained, "3 pods: 2 moved, 1 lost"),
			entry(120, v1beta1.ReasonCompleted, "over"),
		},
	}
	return in
}

// lines writes spans as text: name, begin, end, parent, error, and some attributes.
func lines(spans []*tracepb.Span) []string {
	names := map[string]string{"": "-"}
	for _, s := range spans {
		names[string(s.GetSpanId())] = s.GetName()
	}
	var all []string
	for _, s := range spans {
		sec := func(ns uint64) int64 { return time.Unix(0, int64(ns)).Sub(start).Milliseconds() / 1000 }
		line := fmt.Sprintf("%s %d-%d in %s", s.GetName(), sec(s.GetStartTimeUnixNano()), sec(s.GetEndTimeUnixNano()), names[string(s.GetParentSpanId())])
		for _, a := range s.GetAttributes() {
			switch a.GetKey() {
			case "k8s.namespace.name", "k8s.pod.name", "lifeboat.pod.outcome", "lifeboat.pod.grace_seconds", "lifeboat.hook", "lifeboat.pods.without_span", "lifeboat.waits_for":
				value := a.GetValue().GetStringValue()
				if value == "" {
					value = fmt.Sprint(a.GetValue().GetIntValue())
				}
				line += " " + a.GetKey()[strings.LastIndex(a.GetKey(), ".")+1:] + "=" + value
			}
		}
		if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			line += " ERROR " + s.GetStatus().GetMessage()
		}
		all = append(all, line)
	}
	return all
}

func TestSpansOfDrain(t *testing.T) {
	want := []string{
		"interruption 0-120 in - ERROR 1 pods were lost",
		"decide 0-1 in interruption",
		"wait 1-2 in interruption waits_for=approval",
		"cordon 1-2 in interruption",
		"replace 2-40 in interruption",
		"drain 2-112 in interruption without_span=1",
		"hook 3-9 in drain hook=dump ERROR exit 1",
		"evict pod 110-110 in drain name=db name=pg-0 outcome=lost ERROR it was still there when its instance went",
		"evict pod 41-44 in drain name=shop name=web-1 outcome=moved grace_seconds=30",
		"complete 112-120 in interruption",
	}
	spans := tracing.Spans(drained())
	if diff := cmp.Diff(want, lines(spans)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(spans[0].GetEvents()); n != 9 {
		t.Errorf("%d events, want the timeline without the earlier interruption", n)
	}
	ids := map[string]bool{}
	for _, s := range spans {
		ids[string(s.GetSpanId())] = true
		if got := hex.EncodeToString(s.GetTraceId()); got != "0a1b2c3d00004000800000000000beef" || len(s.GetSpanId()) != 8 {
			t.Errorf("%s: trace %s, span %x", s.GetName(), got, s.GetSpanId())
		}
	}
	if len(ids) != len(spans) {
		t.Errorf("%d ids of %d spans", len(ids), len(spans))
	}
	if diff := cmp.Diff(lines(spans), lines(tracing.Spans(drained()))); diff != "" || string(spans[3].GetSpanId()) != string(tracing.Spans(drained())[3].GetSpanId()) {
		t.Error("the same record gives other spans")
	}
}

func TestUnfinishedRecordHasNoSpans(t *testing.T) {
	in := drained()
	in.Status.CompletionTime = nil
	if spans := tracing.Spans(in); spans != nil {
		t.Errorf("%v", lines(spans))
	}
}

func TestLaterInterruptionHasItsOwnTrace(t *testing.T) {
	first, second := drained(), drained()
	second.Status.History = append(recordtest.CompletedBefore(ref(-500).Time), recordtest.CompletedBefore(second.Status.CompletionTime.Time)...)
	a, b := tracing.Spans(first), tracing.Spans(second)
	if string(a[0].GetTraceId()) == string(b[0].GetTraceId()) || string(a[1].GetSpanId()) == string(b[1].GetSpanId()) || len(b[0].GetTraceId()) != 16 {
		t.Errorf("traces %x and %x", a[0].GetTraceId(), b[0].GetTraceId())
	}
}

func TestPodsAreBounded(t *testing.T) {
	in := drained()
	in.Status.Drain.PodCounts = v1beta1.PodCounts{Total: 300, Moved: 299, Lost: 1}
	for i := range 30 {
		for j := range 10 {
			in.Status.Drain.Pods = append(in.Status.Drain.Pods, left("shop", fmt.Sprintf("p-%d-%d", i, j), 47+i, 50+i))
		}
	}
	pods, lost := 0, 0
	for _, line := range lines(tracing.Spans(in)) {
		if strings.HasPrefix(line, "evict pod") {
			pods++
			lost += strings.Count(line, "outcome=lost")
		}
		if strings.HasPrefix(line, "drain") && !strings.Contains(line, fmt.Sprintf("without_span=%d", 300-tracing.MaxPods)) {
			t.Error(line)
		}
	}
	if pods != tracing.MaxPods || lost != 1 {
		t.Errorf("%d pods, %d lost", pods, lost)
	}
}

// Each other part of a record gives its span, and an empty record gives no panic.
func TestSpansOfOtherParts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.InterruptionStatus)
		want   string
	}{
		"empty": {func(s *v1beta1.InterruptionStatus) { *s = v1beta1.InterruptionStatus{CompletionTime: ref(7)} }, "interruption 0-7 in -"},
		"lifecycle hooks": {func(s *v1beta1.InterruptionStatus) {
			s.LifecycleHooks = &v1beta1.LifecycleHooksStatus{WaitingSince: ref(5), CompletedTime: ref(90)}
		}, "lifecycle hooks 5-90 in interruption"},
		"termination": {func(s *v1beta1.InterruptionStatus) { s.Drain.TerminationTime = ref(113) }, "terminate 113-120 in interruption"},
		"failed termination": {func(s *v1beta1.InterruptionStatus) {
			s.Drain.TerminationTime, s.Drain.TerminationMessage = ref(113), "denied"
		}, "terminate 113-120 in interruption ERROR denied"},
		"NodeClaim": {func(s *v1beta1.InterruptionStatus) {
			s.Drain.NodeClaimDeletion = &v1beta1.NodeClaimDeletionStatus{Time: at(20), DeletedTime: ref(21)}
		}, "terminate 20-21 in interruption"},
		"failed replacement": {func(s *v1beta1.InterruptionStatus) {
			r := s.Drain.Replacement
			r.Phase, r.ReadyTime, r.Message = v1beta1.ReplacementFailed, nil, "no capacity"
		}, "replace 2-120 in interruption ERROR no capacity"},
		"gone before asked": {func(s *v1beta1.InterruptionStatus) {
			s.Drain.Pods[0].DepartureTime = second(30)
			s.Drain.Pods[0].EvictionTime = second(100)
		}, "evict pod 100-100 in drain name=shop name=web-1 outcome=moved grace_seconds=30"},
		"asked in the pass that cordoned": {func(s *v1beta1.InterruptionStatus) { s.Drain.Pods[0].EvictionTime = second(1) }, "evict pod 2-44 in drain name=shop name=web-1 outcome=moved grace_seconds=30"},
		"pause": {func(s *v1beta1.InterruptionStatus) {
			s.Timeline = append(s.Timeline, entry(60, v1beta1.ReasonPaused, "p"), entry(70, v1beta1.ReasonResumed, "r"))
		}, "wait 60-70 in interruption waits_for=pause"},
	} {
		in := drained()
		c.change(&in.Status)
		if got := strings.Join(lines(tracing.Spans(in)), "\n") + "\n"; !strings.Contains(got, c.want+"\n") {
			t.Errorf("%s: no %q in\n%s", name, c.want, got)
		}
	}
}

// The page lists every span and attribute that the code has, and no other.
func TestSpansReferenceIsCurrent(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/tracing.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && (strings.HasPrefix(spec.Names[0].Name, "span") || strings.HasPrefix(spec.Names[0].Name, "attr")) {
			name := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
			names[name] = true
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/reference/tracing.md lacks %s", name)
			}
		}
		return true
	})
	for _, name := range regexp.MustCompile("`(lifeboat\\.[a-z_.]+)`").FindAllStringSubmatch(string(page), -1) {
		if !names[name[1]] {
			t.Errorf("docs/reference/tracing.md has %s, which no span has", name[1])
		}
	}
	if len(names) < 30 {
		t.Errorf("only %d names", len(names))
	}
}
