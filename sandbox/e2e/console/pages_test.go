//go:build e2e

package console

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func TestPagesShowRecordsLive(t *testing.T) {
	r := &shared
	now := time.Now().Truncate(time.Second) // the API keeps whole seconds
	waits := record("i-0000000000000000b", "ip-10-0-0-2.ec2.internal", now)
	waits.Status.Phase = v1beta1.PhaseAwaitingApproval
	waits.Status.Conditions[1].Message = hostile + " \u202e"
	waits.Status.Drain.Pods = nil
	r.write(t, record("i-0000000000000000a", "ip-10-0-0-1.ec2.internal", now), waits, over(record("i-0000000000000000c", "ip-10-0-0-3.ec2.internal", now.Add(-time.Hour)), 2*time.Minute))
	b := r.open(t, 1280, 900)

	b.shows("lifeboat approve ip-10-0-0-2.ec2.internal")
	b.shows(hostile) // as text
	if title := value[string](b, "document.title"); !strings.HasPrefix(title, "Now") {
		t.Errorf("text from the cluster has run: title %q", title)
	}
	if n := value[int](b, "document.querySelectorAll('main img, main script').length"); n != 0 {
		t.Errorf("text from the cluster became %d elements", n)
	}
	b.until(`document.querySelectorAll(".rows tbody tr").length === 2`)

	// Keys: j focuses the first row, Enter opens it, Esc goes back.
	b.run(chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.shows("Time line")
	b.until(`document.querySelectorAll(".lanes tbody tr").length === 6`)
	if lane := value[string](b, `[...document.querySelectorAll(".lanes tbody tr")].find((r) => r.innerText.includes("shop/web-1")).querySelector(".track").ariaLabel`); lane != "asked to leave at +14s; grace 30s; gone at +18s" {
		t.Errorf("lane of shop/web-1: %q", lane)
	}
	r.change(t, "i-0000000000000000a", func(s *v1beta1.InterruptionStatus) {
		s.Drain.Pods[3].Message = "its last call is near"
	})
	b.shows("its last call is near")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.shows("Under way")

	b.visit("#/history")
	b.shows("ip-10-0-0-3.ec2.internal")
	b.run(chromedp.KeyEvent("/"), chromedp.KeyEvent("no such node"))
	b.shows("No interruption matches the search.")
}

func TestWiringShowsWhatIsWrong(t *testing.T) {
	r := &shared
	policy := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1beta1.InterruptionPolicySpec{
		Rules: []v1beta1.Rule{{Name: "spot", Kinds: []string{"SpotInterruption"}, Action: v1beta1.ActionDrain}},
	}}
	if err := r.client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	policy.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Invalid", Message: "the window has no end", LastTransitionTime: metav1.Now()}}
	if err := r.client.Status().Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	b := r.open(t, 1280, 900)
	b.visit("#/wiring")
	b.shows("the window has no end")
	b.shows("Lifeboat is not installed in this cluster")
	b.shows("lifeboat doctor --probe")
}

func TestPlanPredictsPods(t *testing.T) {
	r := &shared
	grace := int64(20)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "web-1"}, Spec: corev1.PodSpec{
		NodeName: "ip-10-0-0-1.ec2.internal", TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		ServiceAccountName: "default",
	}}
	for r.client.Create(t.Context(), pod) != nil { // the controllers make the service account first
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		time.Sleep(100 * time.Millisecond)
	}
	b := r.open(t, 1280, 900)
	b.visit("#/plan?node=ip-10-0-0-1.ec2.internal")
	b.shows("1 of 1 pods leave with their whole grace period")
	b.until(`document.querySelector(".lanes tbody tr").innerText.includes("kube-public/web-1")`)
	b.visit("#/plan?node=ip-10-0-0-9.ec2.internal")
	b.shows(`"ip-10-0-0-9.ec2.internal" not found; similar names: ip-10-0-0-1.ec2.internal`)
}

// The audit log of the API server has all requests of the tests so far.
func TestViewerOnlyReads(t *testing.T) {
	b := shared.open(t, 1280, 900)
	b.visit("#/plan?node=ip-10-0-0-1.ec2.internal")
	b.shows("leave")
	verbs := shared.requests(t)
	for verb := range verbs {
		if verb != "get" && verb != "list" && verb != "watch" {
			t.Errorf("the console sent %d requests to %s", verbs[verb], verb)
		}
	}
	if verbs["list"] == 0 || verbs["watch"] == 0 {
		t.Errorf("requests: %v", verbs)
	}
}
