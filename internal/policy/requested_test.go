package policy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func TestRequestIsAlwaysDrainedNow(t *testing.T) {
	asked := build("r", notice.KindRequested, received(noon))
	by := build("r", notice.KindRequested, received(noon), due(noon.Add(3*time.Hour), v1beta1.DeadlineEstimated))
	nightly := on(v1beta1.ActionTerminate, "*")
	nightly.Window, nightly.Strategy = &v1beta1.Window{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}, v1beta1.StrategySurge
	approval := on(v1beta1.ActionDrain, notice.KindRequested)
	approval.Approval = v1beta1.ApprovalRequired
	for name, tc := range map[string]struct {
		notice   v1beta1.Notice
		policies []v1beta1.InterruptionPolicy
		strategy v1beta1.Strategy
		awaits   bool
	}{
		"without a policy":                  {asked, nil, v1beta1.StrategySurge, false},
		"with a deadline later":             {by, nil, v1beta1.StrategySurge, false},
		"a policy that ignores everything":  {asked, []v1beta1.InterruptionPolicy{named("p", 1)}, v1beta1.StrategySurge, false},
		"a policy that terminates at night": {by, []v1beta1.InterruptionPolicy{named("p", 1, nightly)}, v1beta1.StrategySurge, false},
		"a policy that requires approval":   {asked, []v1beta1.InterruptionPolicy{named("p", 1, approval)}, v1beta1.StrategySurge, true},
	} {
		d, ok := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{tc.notice}, Node: ofPool("web"), Policies: tc.policies})
		if !ok || d.Action != v1beta1.ActionDrain || !d.NotBefore.IsZero() || d.Strategy != tc.strategy || d.AwaitsApproval != tc.awaits {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
