package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// answersRefused is the id of what is found about answers that AWS refused.
const answersRefused = "answers-refused"

// recently is how far back refused answers are looked for.
const recently = 24 * time.Hour

// refusedAnswers looks for lifecycle actions that somebody was refused to complete:
// CloudTrail tells of them, where a trail records management events.
func (d *examination) refusedAnswers(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	var all v1alpha1.InterruptionList
	if err := d.kube.list(ctx, "interruptions", &all); err != nil {
		if command.IsNotInstalled(err) {
			return nil, nil
		}
		return nil, err
	}
	return judgeRefused(all.Items, d.now()), nil
}

// judgeRefused names the instances about which an answer was refused of late.
func judgeRefused(all []v1alpha1.Interruption, now time.Time) []finding.Finding {
	var instances []string
	var last v1alpha1.Notice
	for _, in := range all {
		for _, n := range in.Spec.Notices {
			if n.Kind != notice.KindLifecycleActionFailure || n.Drill || now.Sub(n.Time.Time) > recently {
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
		Problem: fmt.Sprintf("in the last day somebody tried to complete a lifecycle action and was refused (%v): who gives up then leaves the instance to its hook's time-out. The last: %s",
			instances[:min(len(instances), shown)], last.Description),
		Fix: "see in the notice who it was; a program that answers once, such as kOps' nodeup or AWS Node Termination Handler, is mended by having Lifeboat answer that hook as well: spec.hooks of the NodeGroup",
	}}
}
