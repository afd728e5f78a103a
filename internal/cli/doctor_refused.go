package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// answersRefused is the ID of the finding about refused answers.
const answersRefused = "answers-refused"

// refusedPeriod is the period in which refused answers are reported.
const refusedPeriod = 24 * time.Hour

// refusedAnswers looks for attempts to complete a lifecycle action that AWS
// refused. CloudTrail reports them if a trail records management events.
func (d *doctorRun) refusedAnswers(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	var all v1beta1.InterruptionList
	if err := d.kube.list(ctx, "interruptions", &all); err != nil {
		if command.IsNotInstalled(err) {
			return nil, nil
		}
		return nil, err
	}
	return refusedFindings(all.Items, d.now()), nil
}

// refusedFindings reports the instances with a recent refused answer.
func refusedFindings(all []v1beta1.Interruption, now time.Time) []finding.Finding {
	var instances []string
	var last v1beta1.Notice
	for _, in := range all {
		for _, n := range in.Spec.Notices {
			if n.Kind != notice.KindLifecycleActionFailure || n.Drill || now.Sub(n.Time.Time) > refusedPeriod {
				continue
			}
			if !slices.Contains(instances, in.Spec.InstanceID) {
				instances = append(instances, in.Spec.InstanceID)
			}
			if n.Time.After(last.Time.Time) {
				last = n
			}
		}
	}
	if len(instances) == 0 {
		return nil
	}
	slices.Sort(instances)
	const shown = 5
	return []finding.Finding{{
		Severity: finding.Warning, ID: answersRefused, Object: fmt.Sprintf("%s, such as %s", counted(len(instances), "instance"), instances[0]),
		Problem: fmt.Sprintf("in the last day AWS refused calls to complete a lifecycle action (%v): without another answer the instance waits until its hook times out. The latest: %s",
			instances[:min(len(instances), shown)], last.Description),
		Fix: "the notice names the caller; if the caller answers only once, such as kOps' nodeup or AWS Node Termination Handler, let Lifeboat answer that hook as well: set spec.hooks of the NodeGroup",
	}}
}
