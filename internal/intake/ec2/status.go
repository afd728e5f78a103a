package ec2

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// checks are the status checks of an instance: the names of their filters without
// ".status" (EC2 API Reference, DescribeInstanceStatus). They are subjects of notices too.
var checks = []string{"system-status", "instance-status", "attached-ebs-status"}

// checkCovers is what each check covers (EC2 User Guide, "Status checks for
// Amazon EC2 instances").
var checkCovers = map[string]string{
	"system-status":       "the host or its network",
	"instance-status":     "the instance's operating system or network",
	"attached-ebs-status": "the instance's connection to its EBS volumes",
}

const (
	statusOK       = "ok"
	statusImpaired = "impaired"
)

// readEvents returns the notices of an instance's scheduled events. An event that cannot be
// decoded does not hide the others.
func readEvents(row *types.InstanceStatus) ([]notice.Notice, error) {
	instance := aws.ToString(row.InstanceId)
	if !instanceFormat.MatchString(instance) {
		return nil, fmt.Errorf("%q is no instance id", instance)
	}
	var notices []notice.Notice
	var unread error
	for i := range row.Events {
		e := &row.Events[i]
		n, err := poll.Scheduled{
			EventID: strings.TrimSpace(aws.ToString(e.InstanceEventId)), Code: string(e.Code), Description: aws.ToString(e.Description),
			NotBefore: aws.ToTime(e.NotBefore), NotAfter: aws.ToTime(e.NotAfter),
		}.Notice(Name, instance)
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("instance %s: %w", instance, err))
			continue
		}
		notices = append(notices, n)
	}
	return notices, unread
}

// check is the outcome of one status check.
type check struct {
	name, status string
	since        time.Time // start of the failure; zero: EC2 does not report it
	seen         time.Time // when the failure was first observed; only if since is zero
}

// start is the best knowledge of when the failure started, or zero.
func (c check) start() time.Time {
	if c.since.IsZero() {
		return c.seen
	}
	return c.since
}

// checksOf returns the outcomes of the checks in a row.
func checksOf(row *types.InstanceStatus) []check {
	var all []check
	add := func(name string, summary *types.InstanceStatusSummary) {
		if summary == nil {
			return
		}
		c := check{name: name, status: string(summary.Status)}
		for _, d := range summary.Details {
			c.since = earliest(c.since, d.ImpairedSince)
		}
		all = append(all, c)
	}
	add(checks[0], row.SystemStatus)
	add(checks[1], row.InstanceStatus)
	if ebs := row.AttachedEbsStatus; ebs != nil {
		c := check{name: checks[2], status: string(ebs.Status)}
		for _, d := range ebs.Details {
			c.since = earliest(c.since, d.ImpairedSince)
		}
		all = append(all, c)
	}
	return all
}

func earliest(a time.Time, b *time.Time) time.Time {
	if b == nil || !poll.Plausible(*b) || (!a.IsZero() && a.Before(*b)) {
		return a
	}
	return b.UTC()
}

// impaired returns the notice of a check that fails. Its id contains the start of the
// episode, so that each episode is a notice of its own.
func impaired(instance string, c check) notice.Notice {
	n := notice.Notice{
		Notice: v1beta1.Notice{
			Kind: notice.KindInstanceStatus, Source: Name, Subject: c.name, EventTypeCode: c.name,
			Description: fmt.Sprintf("the status check %s fails: %s", c.name, checkCovers[c.name]),
		},
		InstanceID: instance,
	}
	if start := c.start(); !start.IsZero() {
		n.Time = metav1.NewTime(start.UTC())
	}
	if !c.since.IsZero() {
		n.Description = fmt.Sprintf("the status check %s has failed since %s: %s", c.name, poll.Moment(c.since), checkCovers[c.name])
	}
	n.ID = poll.ID(Name, n.Kind, c.name, statusImpaired, poll.Moment(c.start()))
	return n
}

// overtaken returns withdrawals of the open notices that the status of the
// instance contradicts: events that are no longer listed, and checks that pass
// again. A check that neither passes nor fails contradicts nothing.
func overtaken(row *types.InstanceStatus, open []notice.Notice) []notice.Notice {
	listed, passed := map[string]bool{}, map[string]bool{}
	for i := range row.Events {
		listed[strings.TrimSpace(aws.ToString(row.Events[i].InstanceEventId))] = true
		listed[string(row.Events[i].Code)] = true // the subject of events without an id
	}
	for _, c := range checksOf(row) {
		passed[c.name] = c.status == statusOK
	}
	var back []notice.Notice
	for _, n := range open {
		switch {
		case n.Kind == notice.KindScheduledChange && !listed[n.Subject]:
			back = append(back, poll.Withdraw(n, "EC2 no longer lists the scheduled event "+n.EventTypeCode))
		case n.Kind == notice.KindInstanceStatus && passed[n.Subject]:
			back = append(back, poll.Withdraw(n, "the status check "+n.Subject+" passes again"))
		}
	}
	return back
}
