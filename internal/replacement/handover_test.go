package replacement

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestNodeClaimDeletionDecision(t *testing.T) {
	t.Parallel()
	plan := func(steps ...drain.Step) drain.Plan {
		var p drain.Plan
		for _, s := range steps {
			p.Verdicts = append(p.Verdicts, drain.Verdict{Step: s})
		}
		return p
	}
	for name, test := range map[string]struct {
		plan     drain.Plan
		deadline *v1beta1.Deadline
		want     bool
	}{
		"no pod is left":                            {plan(drain.StepStays), hard(time.Minute), true},
		"no pod is left, no deadline":               {plan(), nil, true},
		"one waits":                                 {plan(drain.StepWaits, drain.StepLeaving), hard(10 * time.Second), false},
		"all are leaving, and have time":            {plan(drain.StepLeaving), hard(11 * time.Second), false},
		"all are leaving, and their time is over":   {plan(drain.StepLeaving), hard(10 * time.Second), true},
		"all are leaving, and there is no deadline": {plan(drain.StepLeaving), nil, false},
	} {
		if got := HandoverDue(test.plan, test.deadline, 10*time.Second, noon); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDeadlineIsOnlyTightened(t *testing.T) {
	t.Parallel()
	deadline := hard(2 * time.Minute)
	stands := func(at string) *Claim { return &Claim{Annotations: map[string]string{AnnotationTermination: at}} }
	grace := func(d string, deleted time.Time) *Claim {
		change := []func(map[string]any){set(d, "spec", "terminationGracePeriod")}
		if !deleted.IsZero() {
			change = append(change, set(deleted.Format(time.RFC3339), "metadata", "deletionTimestamp"))
		}
		return mustClaim(change...)
	}
	for name, test := range map[string]struct {
		claim    *Claim
		deadline *v1beta1.Deadline
		want     string
	}{
		"shorter terminationGracePeriod":                  {grace("1m", time.Time{}), deadline, "2026-05-11T12:01:00Z"},
		"longer terminationGracePeriod":                   {grace("1h", time.Time{}), deadline, "2026-05-11T12:02:00Z"},
		"terminationGracePeriod of zero":                  {grace("0s", time.Time{}), deadline, "2026-05-11T12:00:00Z"},
		"terminationGracePeriod counts from the deletion": {grace("1m", noon.Add(-30*time.Second)), deadline, "2026-05-11T12:00:30Z"},
		"terminationGracePeriod without a hard deadline":  {grace("1m", time.Time{}), nil, ""},
		"none stands":             {&Claim{}, deadline, "2026-05-11T12:02:00Z"},
		"a later one stands":      {stands("2026-05-11T12:10:00Z"), deadline, "2026-05-11T12:02:00Z"},
		"an earlier one stands":   {stands("2026-05-11T12:01:00Z"), deadline, ""},
		"the same stands":         {stands("2026-05-11T14:02:00+02:00"), deadline, ""},
		"something odd stands":    {stands("soon"), deadline, "2026-05-11T12:02:00Z"},
		"the deadline is not one": {&Claim{}, nil, ""},
		"the deadline is soft":    {&Claim{}, &v1beta1.Deadline{Time: deadline.Time, Type: v1beta1.DeadlineSoft}, ""},
	} {
		if got, changed := Tightened(test.claim, test.deadline, noon); got != test.want || changed != (test.want != "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestForwardedNoticeMatchesEventBridgeFormat(t *testing.T) {
	t.Parallel()
	n := v1beta1.Notice{ID: "1234", Kind: notice.KindSpotInterruption, Time: metav1.NewTime(noon), InstanceAction: "terminate"}
	text, ok := Message(n, instance, zoneA, Place{"111122223333", "us-east-1"})
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	want := map[string]any{
		"version": "0", "id": "1234", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
		"account": "111122223333", "region": "us-east-1", "time": "2026-05-11T12:00:00Z",
		"resources": []any{"arn:aws:ec2:us-east-1a:instance/" + instance},
		"detail":    map[string]any{"instance-id": instance, "instance-action": "terminate"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	for kind, want := range map[string]bool{
		notice.KindCapacityReservationInterruption: true, notice.KindScheduledChange: false, notice.KindInstanceStateChange: false, "": false,
	} {
		if _, ok := Message(v1beta1.Notice{Kind: kind}, instance, zoneA, Place{}); ok != want {
			t.Errorf("%s: %v", kind, ok)
		}
	}
}

func TestNoticesThatEndTheInstance(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]bool{"": true, notice.ActionTerminate: true, notice.ActionStop: true, notice.ActionReboot: false, notice.ActionMaintain: false} {
		if got := Ends(v1beta1.Notice{InstanceAction: action}); got != want {
			t.Errorf("%q: %v", action, got)
		}
	}
}
