package ec2

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const instance = "i-0a1b2c3d4e5f60718"

var now = time.Date(2026, 5, 11, 8, 14, 5, 0, time.UTC)

func request(code string, change ...func(*types.SpotInstanceRequest)) *types.SpotInstanceRequest {
	r := &types.SpotInstanceRequest{
		InstanceId: aws.String(instance), SpotInstanceRequestId: aws.String("sir-1a2b3c4d"),
		Status: &types.SpotInstanceStatus{Code: aws.String(code), UpdateTime: aws.Time(now.Add(-3 * time.Second))},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func TestReadSpotRequest(t *testing.T) {
	none := func(*types.SpotInstanceRequest) {}
	tests := []struct {
		code   string
		change func(*types.SpotInstanceRequest)
		want   string // id, action and deadline; empty: none
	}{
		{"marked-for-termination", none, "ec2/SpotInterruption/sir-1a2b3c4d/marked-for-termination/2026-05-11T08:14:02Z terminate 08:16:02"},
		{"marked-for-stop", none, "ec2/SpotInterruption/sir-1a2b3c4d/marked-for-stop/2026-05-11T08:14:02Z stop 08:16:02"},
		{"marked-for-stop-by-experiment", none, "ec2/SpotInterruption/sir-1a2b3c4d/marked-for-stop-by-experiment/2026-05-11T08:14:02Z stop 08:16:02"},
		{"marked-for-termination-by-experiment", none, "ec2/SpotInterruption/sir-1a2b3c4d/marked-for-termination-by-experiment/2026-05-11T08:14:02Z terminate 08:16:02"},
		{"marked-for-hibernation", none, "ec2/SpotInterruption/sir-1a2b3c4d/marked-for-hibernation/2026-05-11T08:14:02Z hibernate 08:14:02"},
		{"marked-for-teleport", none, "ec2/SpotInterruption/sir-1a2b3c4d/marked-for-teleport/2026-05-11T08:14:02Z  08:16:02"},
		{"marked-for-termination", func(r *types.SpotInstanceRequest) { r.Status.UpdateTime = nil },
			"ec2/SpotInterruption/sir-1a2b3c4d/marked-for-termination/ terminate 08:16:05"},
		{"fulfilled", none, ""},
		{"instance-terminated-by-price", none, ""},
		{"", none, ""},
		{"marked-for-termination", func(r *types.SpotInstanceRequest) { r.Status = nil }, ""},
		{"marked-for-termination", func(r *types.SpotInstanceRequest) { r.Status.Code = nil }, ""},
		{"marked-for-termination", func(r *types.SpotInstanceRequest) { r.InstanceId = nil }, ""},
		{"marked-for-termination", func(r *types.SpotInstanceRequest) { r.InstanceId = aws.String("sir-1") }, ""},
	}
	for _, test := range tests {
		n, ok := readSpotRequest(request(test.code, test.change), now)
		got := ""
		if ok {
			got = n.ID + " " + n.InstanceAction + " " + n.Deadline.Time.UTC().Format(time.TimeOnly)
			if n.Deadline.Type != v1beta1.DeadlineHard || n.InstanceID != instance || n.Subject != "sir-1a2b3c4d" {
				t.Errorf("%s: %+v", test.code, n)
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.code, got, test.want)
		}
	}
}

func row(change ...func(*types.InstanceStatus)) *types.InstanceStatus {
	ok := &types.InstanceStatusSummary{Status: types.SummaryStatusOk, Details: []types.InstanceStatusDetails{{Name: types.StatusNameReachability, Status: types.StatusTypePassed}}}
	r := &types.InstanceStatus{
		InstanceId: aws.String(instance), SystemStatus: ok, InstanceStatus: ok,
		AttachedEbsStatus: &types.EbsStatusSummary{Status: types.SummaryStatusOk},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func event(id, code, description string) func(*types.InstanceStatus) {
	return func(r *types.InstanceStatus) {
		r.Events = append(r.Events, types.InstanceStatusEvent{
			InstanceEventId: aws.String(id), Code: types.EventCode(code), Description: aws.String(description),
			NotBefore: aws.Time(now.Add(time.Hour)), NotAfter: aws.Time(now.Add(2 * time.Hour)),
		})
	}
}

func sick(since *time.Time) func(*types.InstanceStatus) {
	return func(r *types.InstanceStatus) {
		r.SystemStatus = &types.InstanceStatusSummary{Status: types.SummaryStatusImpaired,
			Details: []types.InstanceStatusDetails{{Name: types.StatusNameReachability, Status: types.StatusTypeFailed, ImpairedSince: since}}}
		r.AttachedEbsStatus = &types.EbsStatusSummary{Status: types.SummaryStatusImpaired,
			Details: []types.EbsStatusDetails{{ImpairedSince: since}}}
	}
}

func TestReadEvents(t *testing.T) {
	notices, err := readEvents(row(event("instance-event-1", "instance-stop", "x"), event("instance-event-2", "system-reboot", "[Completed] y"),
		func(r *types.InstanceStatus) {
			r.Events = append(r.Events, types.InstanceStatusEvent{InstanceEventId: aws.String("instance-event-3"), Code: "instance-stop"}, types.InstanceStatusEvent{})
		}))
	if err == nil || !strings.Contains(err.Error(), instance) || !strings.Contains(err.Error(), "instance-event-3") {
		t.Errorf("error: %v", err)
	}
	got := map[string]bool{}
	for _, n := range notices {
		got[n.Subject+" "+n.InstanceAction] = n.Withdrawn
	}
	if diff := cmp.Diff(map[string]bool{"instance-event-1 stop": false, "instance-event-2 reboot": true}, got); diff != "" {
		t.Errorf("withdrawn, by subject (-want +got):\n%s", diff)
	}
	if _, err := readEvents(&types.InstanceStatus{}); err == nil {
		t.Error("a row without an instance was read")
	}
}

func TestChecks(t *testing.T) {
	since := now.Add(-5 * time.Minute)
	var got []string
	for _, c := range checksOf(row(sick(&since))) {
		n := impaired(instance, c)
		got = append(got, c.name+" "+c.status+" "+n.ID)
	}
	want := []string{
		"system-status impaired ec2/InstanceStatus/system-status/impaired/2026-05-11T08:09:05Z",
		"instance-status ok ec2/InstanceStatus/instance-status/impaired/",
		"attached-ebs-status impaired ec2/InstanceStatus/attached-ebs-status/impaired/2026-05-11T08:09:05Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := checksOf(&types.InstanceStatus{}); got != nil {
		t.Errorf("checks of an empty row: %v", got)
	}
}

func TestOvertaken(t *testing.T) {
	standing := func(kind, subject string) notice.Notice {
		return notice.Notice{Notice: v1beta1.Notice{ID: "of " + subject, Kind: kind, Source: Name, Subject: subject}, InstanceID: instance}
	}
	all := []notice.Notice{
		standing(notice.KindScheduledChange, "instance-event-1"), standing(notice.KindScheduledChange, "instance-event-2"),
		standing(notice.KindInstanceStatus, "system-status"), standing(notice.KindInstanceStatus, "instance-status"), standing(notice.KindInstanceStatus, "attached-ebs-status"),
	}
	tests := []struct {
		name string
		row  *types.InstanceStatus
		want []string
	}{
		{"an event is no longer listed, and all checks pass", row(event("instance-event-1", "instance-stop", "x")),
			[]string{"attached-ebs-status", "instance-event-2", "instance-status", "system-status"}},
		{"two checks fail", row(sick(nil), event("instance-event-1", "instance-stop", "x"), event("instance-event-2", "instance-stop", "x")), []string{"instance-status"}},
		{"a check that does not say", row(event("instance-event-1", "x", ""), event("instance-event-2", "x", ""), func(r *types.InstanceStatus) {
			r.SystemStatus, r.AttachedEbsStatus = &types.InstanceStatusSummary{Status: types.SummaryStatusInsufficientData}, nil
			r.InstanceStatus = &types.InstanceStatusSummary{Status: types.SummaryStatusInitializing}
		}), nil},
	}
	for _, test := range tests {
		var got []string
		for _, n := range overtaken(test.row, all) {
			if !n.Withdrawn || n.InstanceID != instance {
				t.Errorf("%s: %+v", test.name, n)
			}
			got = append(got, n.Subject)
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: taken back (-want +got):\n%s", test.name, diff)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(instance, "sir-1", "marked-for-stop", "instance-event-1", "instance-stop", "[Completed] x", "impaired", int64(1778500800))
	f.Add("", "", "", "", "", "", "", int64(-1<<62))
	f.Add(" "+instance, strings.Repeat("é", 600), "marked-for-"+strings.Repeat("x", 200), "\xff", "\x00", "\n", "ok", int64(1)<<62)
	f.Fuzz(func(t *testing.T, id, sir, code, eventID, eventCode, description, status string, at int64) {
		when := time.Unix(at, 0)
		spot, ok := readSpotRequest(&types.SpotInstanceRequest{InstanceId: &id, SpotInstanceRequestId: &sir, Status: &types.SpotInstanceStatus{Code: &code, UpdateTime: &when}}, now)
		var notices []notice.Notice
		if ok {
			notices = append(notices, spot)
		}
		r := row(sick(&when), func(r *types.InstanceStatus) {
			r.InstanceId, r.SystemStatus.Status = &id, types.SummaryStatus(status)
			r.Events = []types.InstanceStatusEvent{{InstanceEventId: &eventID, Code: types.EventCode(eventCode), Description: &description, NotBefore: &when, NotAfter: &when}}
		})
		events, _ := readEvents(r)
		notices = append(notices, events...)
		for _, c := range checksOf(r) {
			notices = append(notices, impaired(instance, c))
		}
		notices = append(notices, overtaken(r, notices)...)
		for _, n := range notices {
			if n.ID == "" || len(n.ID) > 128 || utf8.RuneCountInString(n.Subject) > 512 || utf8.RuneCountInString(n.EventTypeCode) > 128 || !instanceFormat.MatchString(n.InstanceID) {
				t.Errorf("the CRD would refuse %+v", n)
			}
			if n.Deadline != nil && !poll.Plausible(n.Deadline.Time.Time) {
				t.Errorf("no deadline can be %v", n.Deadline)
			}
			if hard := n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineHard; hard != (n.Kind == notice.KindSpotInterruption) {
				t.Errorf("a deadline of %s is %v", n.Kind, n.Deadline)
			}
		}
	})
}
