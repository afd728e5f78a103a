package corroborate_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestGenuineNotice(t *testing.T) {
	t.Parallel()
	running := cloud.Instance{ID: id, State: "running", SpotStatus: "fulfilled"}
	with := func(state, spot string) *cloud.Instance {
		i := running
		i.State, i.SpotStatus = state, spot
		return &i
	}
	of := func(kind, source string) v1beta1.Notice { return v1beta1.Notice{Kind: kind, Source: source} }
	drill, withdrawn := of(notice.KindSpotInterruption, notice.SourceQueue), of(notice.KindSpotInterruption, notice.SourceEC2)
	drill.Drill, withdrawn.Withdrawn = true, true
	for name, tc := range map[string]struct {
		ruling   v1beta1.Notice
		others   []v1beta1.Notice
		instance *cloud.Instance
		want     corroborate.Answer
	}{
		"EC2 has marked the spot request":       {of(notice.KindSpotInterruption, notice.SourceQueue), nil, with("running", "marked-for-termination"), corroborate.Agree},
		"EC2 has marked it for a stop":          {of(notice.KindSpotInterruption, notice.SourceIMDS), nil, with("running", "marked-for-stop"), corroborate.Agree},
		"the spot request is fulfilled":         {of(notice.KindSpotInterruption, notice.SourceQueue), nil, &running, corroborate.Differ},
		"the same from an agent":                {of(notice.KindSpotInterruption, notice.SourceIMDS), nil, &running, corroborate.Differ},
		"an instance that is no spot instance":  {of(notice.KindSpotInterruption, notice.SourceQueue), nil, with("running", ""), corroborate.Unknown},
		"the poll has read the same":            {of(notice.KindSpotInterruption, notice.SourceQueue), []v1beta1.Notice{of(notice.KindSpotInterruption, notice.SourceEC2)}, &running, corroborate.Agree},
		"what the poll read is withdrawn":       {of(notice.KindSpotInterruption, notice.SourceQueue), []v1beta1.Notice{withdrawn}, &running, corroborate.Differ},
		"the poll has read another kind":        {of(notice.KindSpotInterruption, notice.SourceQueue), []v1beta1.Notice{of(notice.KindScheduledChange, notice.SourceEC2)}, &running, corroborate.Differ},
		"the instance ends already":             {of(notice.KindSpotInterruption, notice.SourceQueue), nil, with("shutting-down", "fulfilled"), corroborate.Agree},
		"EC2 has forgotten the instance":        {of(notice.KindSpotInterruption, notice.SourceQueue), nil, nil, corroborate.Agree},
		"a drill with a permit":                 {drill, nil, &running, corroborate.Agree},
		"a person asked":                        {of(notice.KindRequested, notice.SourceUser), nil, &running, corroborate.Agree},
		"the poll found failed status checks":   {of(notice.KindInstanceStatus, notice.SourceEC2), nil, &running, corroborate.Agree},
		"the group's poll found a termination":  {of(notice.KindAutoScalingTermination, notice.SourceAutoScaling), nil, &running, corroborate.Agree},
		"a state change that EC2 denies":        {of(notice.KindInstanceStateChange, notice.SourceQueue), nil, &running, corroborate.Differ},
		"a scheduled change by message":         {of(notice.KindScheduledChange, notice.SourceQueue), nil, &running, corroborate.Unknown},
		"the same, and the poll has read it":    {of(notice.KindScheduledChange, notice.SourceQueue), []v1beta1.Notice{of(notice.KindScheduledChange, notice.SourceEC2)}, &running, corroborate.Agree},
		"a recommendation by message":           {of(notice.KindRebalanceRecommendation, notice.SourceQueue), nil, &running, corroborate.Agree},
		"a recommendation by an agent alone":    {of(notice.KindRebalanceRecommendation, notice.SourceIMDS), nil, &running, corroborate.Unknown},
		"a recommendation by agent and message": {of(notice.KindRebalanceRecommendation, notice.SourceIMDS), []v1beta1.Notice{of(notice.KindRebalanceRecommendation, notice.SourceQueue)}, &running, corroborate.Agree},
	} {
		got := corroborate.Genuine(&tc.ruling, append(tc.others, tc.ruling), tc.instance)
		if got.Answer != tc.want || got.Agrees() != (got.Why == "") {
			t.Errorf("%s: got %+v, want %s", name, got, tc.want)
		}
	}
}
