package hooks

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Outcome returns the state of a Job and a sentence about it. A Job whose
// result is decided counts as finished: SuccessCriteriaMet and FailureTarget
// precede Complete and Failed, which follow when its pods are gone (Kubernetes
// documentation, "Jobs", "Terminal Job conditions").
func Outcome(job *batchv1.Job) (v1beta1.HookState, string) {
	name := "Job " + job.Namespace + "/" + job.Name
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			return v1beta1.HookSucceeded, name + " completed"
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			return v1beta1.HookFailed, fmt.Sprintf("%s %s; see `kubectl -n %s logs job/%s`", name, failureReason(job, c), job.Namespace, job.Name)
		}
	}
	switch ready := job.Status.Ready; {
	case job.Status.Active == 0:
		return v1beta1.HookRunning, name + " was created; it has no pod yet"
	case ready == nil || *ready == 0:
		return v1beta1.HookRunning, name + " was created; its pod is not ready yet"
	}
	return v1beta1.HookRunning, name + " runs"
}

// failureReason says why a Job failed.
func failureReason(job *batchv1.Job, c batchv1.JobCondition) string {
	switch c.Reason {
	case batchv1.JobReasonDeadlineExceeded:
		if limit := job.Spec.ActiveDeadlineSeconds; limit != nil {
			return fmt.Sprintf("did not finish within %ds", *limit)
		}
		return "did not finish in time"
	case batchv1.JobReasonBackoffLimitExceeded:
		if limit := job.Spec.BackoffLimit; limit != nil && *limit > 0 {
			return fmt.Sprintf("failed: its pods failed more than %d times", *limit)
		}
		return "failed: its pod failed"
	}
	text := "failed"
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}
