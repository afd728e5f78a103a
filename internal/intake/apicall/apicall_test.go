package apicall_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/apicall"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	instance = "i-0a1b2c3d4e5f60718"
	eventID  = "7f3b9c52-3c1e-4f7e-9b7e-2f4b8a1d6c90"
)

// record is CloudTrail's record of a refused call, with changes: pairs of old and new text.
func record(changes ...string) string {
	text := `{"eventVersion":"1.11","userIdentity":{"type":"AssumedRole","arn":"arn:aws:sts::210987654321:assumed-role/nodes/i-1"},` +
		`"eventTime":"2026-05-11T08:14:02Z","eventSource":"autoscaling.amazonaws.com","eventName":"CompleteLifecycleAction","awsRegion":"eu-west-1",` +
		`"errorCode":"ValidationException","errorMessage":"No active Lifecycle Action found with instance ID ` + instance + `",` +
		`"requestParameters":{"autoScalingGroupName":"workers","lifecycleHookName":"kops-warmpool","instanceId":"` + instance + `"},` +
		`"eventID":"` + eventID + `","readOnly":false,"recipientAccountId":"210987654321"}`
	return strings.NewReplacer(changes...).Replace(text)
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // group and instance; empty: of no concern
		err  string
	}{
		"refused":                       {record(), "workers " + instance, ""},
		"by token":                      {record(`,"instanceId":"`+instance+`"`, ``), "workers " + instance, ""},
		"performed":                     {record(`"errorCode":"ValidationException",`, ``), "", ""},
		"another call":                  {record("CompleteLifecycleAction", "RecordLifecycleActionHeartbeat"), "", ""},
		"another service":               {record("autoscaling.amazonaws.com", "codedeploy.amazonaws.com"), "", ""},
		"no instance":                   {record(instance, "i-xyz"), "", ""},
		"no group":                      {record(`"autoScalingGroupName":"workers",`, ``), "", ""},
		"a group with a very long name": {record(`"workers"`, `"`+strings.Repeat("w", 256)+`"`), "", ""},
		"no parameters":                 {`{"eventName":"CompleteLifecycleAction","errorCode":"AccessDenied","requestParameters":null}`, "", ""},
		"no id":                         {record(eventID, "../.."), "", "no id or no time"},
		"no time":                       {record("2026-05-11T08:14:02Z", "yesterday"), "", "no id or no time"},
		"no JSON":                       {"refused", "", "decoding the record"},
		"an id that is no text":         {record(`"`+eventID+`"`, "7"), "", "decoding the record"},
		"too large":                     {record("kops-warmpool", strings.Repeat("h", 1<<20)), "", "bytes"},
	} {
		n, refusal, known, err := apicall.Read(tc.text)
		got := ""
		if known {
			got = refusal.Group + " " + n.InstanceID
		}
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, tc.want, tc.err)
		}
	}
}

func TestReadNotice(t *testing.T) {
	n, _, _, err := apicall.Read(record())
	if err != nil {
		t.Fatal(err)
	}
	want := notice.Notice{
		InstanceID: instance, Account: "210987654321", Region: "eu-west-1",
		Notice: v1beta1.Notice{
			ID: eventID, Kind: notice.KindLifecycleActionFailure, EventTypeCode: "ValidationException",
			Time: metav1.NewTime(time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)),
			Description: "completing hook kops-warmpool of Auto Scaling group workers was refused: No active Lifecycle Action found with instance ID " + instance +
				"; the caller is arn:aws:sts::210987654321:assumed-role/nodes/i-1",
		},
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(record())
	f.Add(record(instance, "i-xyz"))
	f.Add(record("ValidationException", strings.Repeat("é", 300)))
	f.Add(`{"requestParameters":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		n, refusal, known, err := apicall.Read(text)
		if known && err != nil {
			t.Fatalf("a notice and an error: %v", err)
		}
		if !known {
			return
		}
		if !strings.HasPrefix(n.InstanceID, "i-") || n.InstanceID != refusal.Instance || refusal.Group == "" || len(refusal.Group) > 255 || len(n.ID) != 36 || n.Time.IsZero() {
			t.Fatalf("%+v of %+v", n, refusal)
		}
		for _, text := range []string{n.EventTypeCode, n.Description} {
			if text == "" || utf8.ValidString(fmt.Sprint(refusal)) && !utf8.ValidString(text) {
				t.Fatalf("text %q", text)
			}
		}
		if utf8.RuneCountInString(n.Description) > 1400 || utf8.RuneCountInString(n.EventTypeCode) > 128 { // the CRD counts characters
			t.Fatalf("%d and %d bytes", len(n.Description), len(n.EventTypeCode))
		}
	})
}
