package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// reported are a drain in time, one that lost pods, one that is under way, and one that ended
// before the span.
func reported() []client.Object {
	inTime := interruption(spotNotice("n1", 5*time.Hour))
	complete(inTime, 5*time.Hour-3*time.Minute, 7, 0)
	inTime.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "web"}
	inTime.Status.Deadline = inTime.Spec.Notices[0].Deadline
	inTime.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDrained, Status: "True", LastTransitionTime: metav1.NewTime(clock.Add(-5*time.Hour + 43*time.Second))}}

	lost := interruption(spotNotice("n2", 2*time.Hour))
	complete(lost, 90*time.Minute, 2, 3)
	lost.Name, lost.Spec.InstanceID, lost.Spec.NodeName, lost.Status.NodeName = instanceB, instanceB, "<b>"+otherNode, "<b>"+otherNode
	happened(lost, 2*time.Hour, v1beta1.ReasonProtectionOverridden, "default/db-0 is deleted although its budget refuses")

	open := interruption(requestNotice())
	open.Name, open.Spec.InstanceID = "i-0c3d4e5f607182930", "i-0c3d4e5f607182930"
	open.Status.Kind, open.Status.Phase = notice.KindRequested, v1beta1.PhaseDraining

	observed := interruption(spotNotice("n4", time.Hour))
	observed.Name, observed.Spec.InstanceID = "i-0e5f6071829304152", "i-0e5f6071829304152"
	observed.Status.Kind, observed.Status.Phase = notice.KindSpotInterruption, v1beta1.PhaseScheduled
	observed.Status.Decision = &v1beta1.Decision{
		Mode: v1beta1.ModeObserve, Action: v1beta1.ActionDrain, Replacement: v1beta1.ReplacementBefore, Message: record.ObserveMessage + "Drain: rule 0 of policy web; EC2 takes the instance back",
	}

	old := interruption(spotNotice("n3", 40*24*time.Hour))
	complete(old, 39*24*time.Hour, 9, 9)
	old.Name = "i-0d4e5f60718293041"
	return []client.Object{inTime, lost, open, observed, old}
}

func TestReportIsTextJSONAndHTML(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, withUser("carol"), append(mixedNode(), reported()...)...)}
	text := h.run(t.Context(), "report", "--since", "7d")
	if text.code != ExitOK {
		t.Fatalf("exit code %d: %s", text.code, text.err)
	}
	golden(t, "report.golden", text.out)
	golden(t, "report-json.golden", h.run(t.Context(), "report", "--since", "7d", "-o", "json").out)
	page := h.run(t.Context(), "report", "--since", "7d", "-o", "html").out
	for _, want := range []string{"4 interruptions, 2 of them under way", "3 were lost", `<tr class="lost">`, "&lt;b&gt;" + otherNode, "1m17s", "could not be read"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"<b>", "<script", "src=", "http://", "https://", "@import", "url("} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
}

func TestReportSaysWhatRetentionDeleted(t *testing.T) {
	i := newInstallation()
	i.controller.Spec.Template.Spec.Containers[0].Args = []string{"--ttl=48h0m0s"}
	h := &harness{t: t, cluster: fakeCluster(t, withUser("carol"), append(mixedNode(), i.objects()...)...)}
	for since, says := range map[string]string{"7d": "kept for 48h: those completed before 2026-05-09T08:14:02Z are missing", "24h": ""} {
		r := h.run(t.Context(), "report", "--since", since, "-o", "json")
		if says == "" && strings.Contains(r.out, "are missing") || !strings.Contains(r.out, says) {
			t.Errorf("--since %s:\n%s", since, r.out)
		}
	}
	if r := h.run(t.Context(), "report", "--since", "soon"); r.code != ExitUsage {
		t.Errorf("exit code %d", r.code)
	}
}
