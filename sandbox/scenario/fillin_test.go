package scenario

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

func TestFillInStartsAtFullMinute(t *testing.T) {
	for _, tc := range []struct {
		name  string
		now   time.Time
		want  string
		opens time.Time
	}{
		{"enough of this minute is left", time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC), "15 8 11 5 *", time.Date(2026, 5, 11, 8, 15, 0, 0, time.UTC)},
		{"too little is left", time.Date(2026, 5, 11, 8, 14, 40, 1, time.UTC), "16 8 11 5 *", time.Date(2026, 5, 11, 8, 16, 0, 0, time.UTC)},
		{"to the second", time.Date(2026, 5, 11, 8, 14, 40, 0, time.UTC), "15 8 11 5 *", time.Date(2026, 5, 11, 8, 15, 0, 0, time.UTC)},
		{"over the end of a year", time.Date(2026, 12, 31, 23, 59, 50, 0, time.UTC), "1 0 1 1 *", time.Date(2027, 1, 1, 0, 1, 0, 0, time.UTC)},
		{"in another zone", time.Date(2026, 5, 11, 1, 14, 2, 0, time.FixedZone("x", 2*3600)), "15 23 10 5 *", time.Date(2026, 5, 10, 23, 15, 0, 0, time.UTC)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, opens, err := fillIn([]byte(`schedule: "${cron +20s}"`), tc.now)
			if err != nil || string(got) != `schedule: "`+tc.want+`"` || !opens.Equal(tc.opens) {
				t.Errorf("fillIn() = %s, %s, %v, want %s, %s", got, opens, err, tc.want, tc.opens)
			}
		})
	}
}

func TestFillInKeepsOtherText(t *testing.T) {
	const text = "command: [sh, -c, 'echo $HOME $(NAME)']"
	got, opens, err := fillIn([]byte(text), time.Now())
	if err != nil || string(got) != text || !opens.IsZero() {
		t.Errorf("fillIn() = %s, %s, %v", got, opens, err)
	}
}

func TestSayPatchesMatchCommands(t *testing.T) {
	now := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	record := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{
		InstanceID: "i-a", Notices: []v1beta1.Notice{{
			ID: "1", Kind: "ScheduledChange", Subject: "arn:x", EventTypeCode: "AWS_EC2_INSTANCE_STOP_SCHEDULED", InstanceAction: "stop",
			ReceivedTime: metav1.NewMicroTime(now),
			Deadline:     &v1beta1.Deadline{Time: metav1.NewTime(now.Add(time.Hour)), Type: v1beta1.DeadlineSoft},
		}},
	}}
	for act, want := range map[UserAction]string{
		UserApprove: `{"spec":{"approval":{"by":"dana","time":"2026-05-11T08:14:02.000000Z","about":"ScheduledChange arn:x"}}}`,
		UserHold:    `{"spec":{"hold":{"by":"dana","time":"2026-05-11T08:14:02.000000Z"}}}`,
		UserRelease: `{"spec":{"hold":null}}`,
	} {
		got, err := userActionPatch(UserActionStatement{Act: act, Node: "a", By: "dana"}, record, now)
		if err != nil {
			t.Errorf("%s: %v", act, err)
			continue
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", act, diff)
		}
		if !json.Valid(got) {
			t.Errorf("%s: %s is not JSON", act, got)
		}
	}
	for _, n := range record.Spec.Notices {
		recordtest.Handle(record, n.ID)
	}
	if _, err := userActionPatch(UserActionStatement{Act: UserApprove, Node: "a", By: "dana"}, record, now); err == nil {
		t.Error("an approval of nothing is written")
	}
}
