package ec2

import (
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// marked is the prefix of the status codes of spot requests that EC2 is
	// about to interrupt: marked-for-termination, marked-for-stop, and their
	// variants for experiments (EC2 User Guide, "Spot request status").
	marked = "marked-for-"
	// spotLead is the time from that status to the interruption (EC2 User
	// Guide, "Spot Instance interruption notices").
	spotLead = 2 * time.Minute
)

// instanceFormat matches EC2 instance ids.
var instanceFormat = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// readSpotRequest converts a spot request that is marked for interruption; it
// returns false for any other.
func readSpotRequest(row *types.SpotInstanceRequest, now time.Time) (notice.Notice, bool) {
	instance := strings.TrimSpace(aws.ToString(row.InstanceId))
	if row.Status == nil || !instanceFormat.MatchString(instance) {
		return notice.Notice{}, false
	}
	code := strings.TrimSpace(aws.ToString(row.Status.Code))
	what, ok := strings.CutPrefix(code, marked)
	if !ok {
		return notice.Notice{}, false
	}
	action, lead := "", spotLead
	switch {
	case strings.HasPrefix(what, "termination"):
		action = notice.ActionTerminate
	case strings.HasPrefix(what, "stop"):
		action = notice.ActionStop
	case strings.HasPrefix(what, "hibernat"):
		action, lead = notice.ActionHibernate, 0 // it begins at once
	}
	request := aws.ToString(row.SpotInstanceRequestId)
	n := notice.Notice{
		Notice: v1beta1.Notice{
			Kind: notice.KindSpotInterruption, Source: Name, Subject: notice.Cut(request, 512),
			EventTypeCode: notice.Cut(code, 128), InstanceAction: action,
		},
		InstanceID: instance,
	}
	issued := time.Time{}
	if at := aws.ToTime(row.Status.UpdateTime); poll.Plausible(at) {
		issued = at.UTC()
		n.Time, now = metav1.NewTime(issued), issued
	}
	n.Deadline = notice.At(now.Add(lead).UTC(), v1beta1.DeadlineHard)
	n.Description = "EC2 takes the spot instance back at " + poll.Moment(n.Deadline.Time.Time) + " (its spot request is " + n.EventTypeCode + ")"
	n.ID = poll.ID(Name, n.Kind, request, code, poll.Moment(issued))
	return n, true
}
