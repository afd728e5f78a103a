package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// jobState is the state of a Job.
type jobState string

const (
	jobRunning  jobState = "running"
	jobComplete jobState = "complete"
	jobFailed   jobState = "failed"
	jobNone     jobState = "none" // there is none
)

// jobTrack is the observed data of one Job.
type jobTrack struct {
	name  string
	state jobState
}

// Job records a Job at time t. A deleted Job keeps its last state if it had ended.
func (w *World) Job(t time.Time, job *batchv1.Job, gone bool) []Moment {
	key := job.Namespace + "/" + job.Name
	track := w.jobs[key]
	if track == nil {
		track = &jobTrack{name: job.Name, state: jobNone}
		w.jobs[key] = track
	}
	before := track.state
	track.state = stateOf(job)
	if gone && track.state == jobRunning {
		track.state = jobNone
	}
	if track.state == before {
		return nil
	}
	if track.state == jobComplete {
		w.jobDone = t
	}
	text := map[jobState]string{
		jobRunning: "the Job is made", jobComplete: "the Job is complete", jobFailed: "the Job has failed", jobNone: "the Job is deleted before its end",
	}[track.state]
	return []Moment{w.moment(t, MomentJob, "", key, text)}
}

func stateOf(job *batchv1.Job) jobState {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return jobComplete
		case c.Type == batchv1.JobFailed:
			return jobFailed
		}
	}
	return jobRunning
}

// jobIs: every Job whose name matches, and at least one, is in a state; or there
// is none.
type jobIs struct {
	Glob  string
	State jobState
}

func (c jobIs) Holds(w *World) (bool, string) {
	var seen []string
	holds := true
	for _, j := range w.jobs {
		if j.state != jobNone && matches(c.Glob, j.name) {
			seen = append(seen, fmt.Sprintf("%s is %s", j.name, j.state))
			holds = holds && j.state == c.State
		}
	}
	if len(seen) == 0 {
		return c.State == jobNone, "there is no Job " + c.Glob
	}
	slices.Sort(seen)
	return holds, strings.Join(seen, ", ")
}
