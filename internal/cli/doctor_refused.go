package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/intake/apicall"
	"github.com/lifeboat-dev/lifeboat/internal/intake/cloudtrail"
	"github.com/lifeboat-dev/lifeboat/internal/intake/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// answersRefused is the ID of the finding about refused answers.
const answersRefused = "answers-refused"

// refusedPeriod is the period in which refused answers are reported.
const refusedPeriod = 24 * time.Hour

// lookupTime bounds how long the event history is read: the other checks do not need it.
const lookupTime = 45 * time.Second

// refusedAnswers looks for attempts to complete a lifecycle action that AWS
// refused: those that lifeboatd recorded, and those in CloudTrail's event history.
func (d *doctorRun) refusedAnswers(ctx context.Context) ([]finding.Finding, error) {
	notices, err := d.recordedNotices(ctx)
	return refusedFindings(append(notices, d.refusedInHistory(ctx)...), d.now()), err
}

// recordedNotices returns the notices of all Interruptions.
func (d *doctorRun) recordedNotices(ctx context.Context) ([]notice.Notice, error) {
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
	return noticesOf(all.Items), nil
}

func noticesOf(all []v1beta1.Interruption) (notices []notice.Notice) {
	for _, in := range all {
		for _, n := range in.Spec.Notices {
			notices = append(notices, notice.Notice{Notice: n, InstanceID: in.Spec.InstanceID})
		}
	}
	return notices
}

// refusedInHistory reads CloudTrail's event history for the cluster's groups with hooks. The
// permission is optional, so a failure is a note.
func (d *doctorRun) refusedInHistory(ctx context.Context) []notice.Notice {
	hooked := map[string]bool{}
	for _, g := range d.seen {
		hooked[g.there.Name] = len(g.there.Hooks) > 0
	}
	cfg, err := d.placedConfig(ctx)
	if err != nil || !slices.Contains(slices.Collect(maps.Values(hooked)), true) {
		return nil
	}
	d.progress.Step("reading CloudTrail's event history")
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	isOurs := func(r apicall.Refusal) (bool, error) { return hooked[r.Group], nil }
	notices, err := cloudtrail.NewAPI(cfg).Refused(ctx, d.now().Add(-refusedPeriod), isOurs, ec2.NewAPI(cfg).InstancesWith)
	if err != nil {
		_, permission, advice := poll.Explain(err, cloudtrail.Permission)
		d.notes = append(d.notes, fmt.Sprintf("CloudTrail's event history was not read completely, so refused answers to lifecycle hooks may be missing (%s: %s).",
			permission, advice))
	}
	return notices
}

// refusedFindings reports the instances with a recent refused answer.
func refusedFindings(all []notice.Notice, now time.Time) []finding.Finding {
	var instances []string
	var last notice.Notice
	for _, n := range all {
		if n.Kind != notice.KindLifecycleActionFailure || n.Drill || now.Sub(n.Time.Time) > refusedPeriod {
			continue
		}
		if !slices.Contains(instances, n.InstanceID) {
			instances = append(instances, n.InstanceID)
		}
		if n.Time.After(last.Time.Time) {
			last = n
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
