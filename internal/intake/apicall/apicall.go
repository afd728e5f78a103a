// Package apicall reads CloudTrail's records of API calls, as EventBridge and CloudTrail's event
// history have them. Of concern is a refused call that completes a lifecycle action. It is pure.
package apicall

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Name is the name of the call that completes a lifecycle action.
const Name = "CompleteLifecycleAction"

// FilterGroup is the filter of DescribeInstances by Auto Scaling group. Auto Scaling tags the
// instances of its groups. Others cannot set that tag (EC2 Auto Scaling User Guide, "Tag Auto
// Scaling groups and instances").
const FilterGroup = "tag:aws:autoscaling:groupName"

const (
	// maxRecord is the most that CloudTrail writes of one call (AWS CloudTrail User Guide,
	// "CloudTrail record contents": 1 MB from record version 1.11 on).
	maxRecord = 1 << 20
	// maxGroupName is the limit of AWS (EC2 Auto Scaling API Reference,
	// CreateAutoScalingGroup).
	maxGroupName = 255
)

var (
	// instanceID matches EC2 instance ids (EC2 User Guide, "Resource IDs").
	instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)
	// eventID matches the id that CloudTrail gives a call: a GUID (AWS CloudTrail User Guide,
	// "CloudTrail record contents").
	eventID = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)
)

// Record is CloudTrail's record of a call (AWS CloudTrail User Guide, "CloudTrail record
// contents").
type Record struct {
	EventID string `json:"eventID"`
	Time    string `json:"eventTime"`
	Account string `json:"recipientAccountId"`
	Region  string `json:"awsRegion"`
	Source  string `json:"eventSource"`
	Name    string `json:"eventName"`
	Error   string `json:"errorCode"`
	Message string `json:"errorMessage"`
	Caller  struct {
		ARN string `json:"arn"`
	} `json:"userIdentity"`
	Parameters struct {
		Group    string `json:"autoScalingGroupName"`
		Hook     string `json:"lifecycleHookName"`
		Instance string `json:"instanceId"`
	} `json:"requestParameters"`
}

// Refusal is a refused call that completes a lifecycle action. Without another call the hook ends
// by its timeout, and a launch hook then terminates the healthy instance.
//
// A caller with permissions for one group can name any instance, and AWS records the refusal. So
// the refusal counts only if EC2 lists the instance in the group: see [FilterGroup].
type Refusal struct {
	Instance, Group string

	id, hook, code, message, caller string
}

// Refusal returns what was refused, or why the record is of no concern. ordinary is true if that
// is worth no log line.
func (r *Record) Refusal() (refusal Refusal, unconcern string, ordinary bool) {
	if r.Name != Name || r.Error == "" || r.Source != "" && r.Source != "autoscaling.amazonaws.com" {
		return Refusal{}, fmt.Sprintf("it is a call to %q, or was not refused", notice.Cut(r.Name, 80)), true
	}
	instance := strings.TrimSpace(r.Parameters.Instance)
	if words := strings.Fields(r.Message); !instanceID.MatchString(instance) && len(words) > 0 { // a call by token has it only in the message
		instance = words[len(words)-1]
	}
	group := r.Parameters.Group
	if !instanceID.MatchString(instance) || group == "" || len(group) > maxGroupName {
		return Refusal{}, "the call names no instance of a group", false
	}
	refusal = Refusal{Instance: instance, Group: group, hook: r.Parameters.Hook, code: r.Error, message: r.Message, caller: r.Caller.ARN}
	if eventID.MatchString(r.EventID) {
		refusal.id = r.EventID
	}
	return refusal, "", false
}

// Fill sets what the refusal says of a notice. The id is that of CloudTrail's record, if it has
// one, so that the same call counts once, whichever way its record arrives.
func (f *Refusal) Fill(n *v1beta1.Notice) {
	if f.id != "" {
		n.ID = f.id
	}
	n.EventTypeCode = notice.Cut(f.code, 128)
	n.Description = fmt.Sprintf("completing hook %s of Auto Scaling group %s was refused: %s",
		notice.Cut(f.hook, 255), notice.Cut(f.Group, 255), notice.Cut(f.message, 400))
	if f.caller != "" {
		n.Description += "; the caller is " + notice.Cut(f.caller, 255)
	}
}

// Read returns the notice and the refusal of a record that CloudTrail's event history returned as
// JSON. known is false if the record is of no concern.
func Read(text string) (n notice.Notice, refusal Refusal, known bool, err error) {
	if len(text) > maxRecord {
		return n, refusal, false, fmt.Errorf("the record has %d bytes: expected at most %d", len(text), maxRecord)
	}
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return n, refusal, false, fmt.Errorf("decoding the record: %w", err)
	}
	refusal, unconcern, _ := r.Refusal()
	if unconcern != "" {
		return n, refusal, false, nil
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	if err != nil || refusal.id == "" {
		return n, refusal, false, fmt.Errorf("the record of %q at %q has no id or no time", notice.Cut(r.EventID, 40), notice.Cut(r.Time, 40))
	}
	n = notice.Notice{
		Notice:     v1beta1.Notice{Kind: notice.KindLifecycleActionFailure, Time: metav1.NewTime(at.UTC())},
		InstanceID: refusal.Instance, Account: r.Account, Region: r.Region,
	}
	refusal.Fill(&n.Notice)
	return n, refusal, true, nil
}
