package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

// startJob creates the Job of a try. A Job of that name with this record's UID
// was created before a restart, and may have finished already.
func (w *hookPass) startJob(ctx context.Context, h *v1beta1.Hook, status *v1beta1.HookStatus) error {
	namespace, err := w.jobNamespace(h)
	if err != nil {
		return &startError{err, true}
	}
	job, err := hooks.Job(*h, w.run.Subject, status.Try, namespace)
	if err != nil {
		return &startError{err, true}
	}
	key, uid := client.ObjectKeyFromObject(job), job.Annotations[hooks.AnnotationUID]
	switch err := w.o.Client.Create(ctx, job); {
	case apierrors.IsAlreadyExists(err):
		if job, err = w.job(ctx, key); err != nil {
			return fmt.Errorf("reading Job %s: %w", key, err)
		}
		if job.Annotations[hooks.AnnotationUID] != uid {
			return &startError{fmt.Errorf("a Job %s is in the way that is not Lifeboat's: delete it", key), false}
		}
		w.out.Until = w.run.Now.Add(requeueSoon)
	case err == nil:
		w.out.Until = w.run.Now.Add(jobInterval)
	case rejection.Is(err):
		return &startError{explainRefused(err, key), false}
	default:
		return fmt.Errorf("making Job %s: %w", key, err)
	}
	_, status.Message = hooks.Outcome(job)
	return nil
}

// jobNamespace returns the namespace of a hook's Job: one of those that the
// chart names. Never Lifeboat's own: its pods may be privileged, so the
// author of a policy could take over the controller.
func (w *hookPass) jobNamespace(h *v1beta1.Hook) (string, error) {
	named := w.o.JobNamespaces
	wanted := h.Job.Namespace
	if wanted == "" && len(named) == 1 {
		wanted = named[0]
	}
	switch {
	case len(named) == 0:
		return "", errors.New("hooks may not run Jobs: name a namespace for them in the chart's value hooks.namespaces")
	case wanted == "":
		return "", fmt.Errorf("the hook has no job.namespace: write one of %s", strings.Join(named, ", "))
	case wanted == w.o.Namespace:
		return "", fmt.Errorf("hooks may not run Jobs in Lifeboat's own namespace %s: write another job.namespace", wanted)
	case !slices.Contains(named, wanted):
		return "", fmt.Errorf("hooks may not run Jobs in namespace %s: add it to the chart's value hooks.namespaces, or write another job.namespace", wanted)
	}
	return wanted, nil
}

// jobInterval is how often an unfinished Job is read. A watch would stop the
// start of the process if a namespace with its permissions is deleted.
const jobInterval = 3 * time.Second

func explainRefused(err error, key client.ObjectKey) error {
	text := firstLine(err.Error())
	switch {
	case rejection.ByAdmission(err): // a webhook may answer with any status code
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist: create it, or write another job.namespace in the policy", key.Namespace)
	case apierrors.IsForbidden(err) && strings.Contains(text, "cannot create resource"):
		return fmt.Errorf("creating Jobs in namespace %s is forbidden: add it to the chart's value hooks.namespaces", key.Namespace)
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return fmt.Errorf("the quota of namespace %s does not allow the Job: raise it, or write another job.namespace in the policy: %s", key.Namespace, text)
	}
	return fmt.Errorf("the API server rejected its Job: fix job.template in the policy, or the admission rule that rejects it: %s", text)
}

// job reads a Job. No cache holds Jobs.
func (w *hookPass) job(ctx context.Context, key client.ObjectKey) (*batchv1.Job, error) {
	var job batchv1.Job
	if err := w.o.Live.Get(ctx, key, &job); err != nil {
		return nil, err
	}
	return &job, nil
}

// again is when to check an unfinished Job next.
func (w *hookPass) again(end time.Time) time.Time {
	if soon := w.run.Now.Add(jobInterval); soon.Before(end) {
		return soon
	}
	return end
}

// checkJob reads the state of a try's Job.
func (w *hookPass) checkJob(ctx context.Context, h *v1beta1.Hook, status v1beta1.HookStatus) (v1beta1.HookStatus, error) {
	namespace, err := w.jobNamespace(h)
	if err != nil { // the setting or the policy changed after the Job was created
		return w.failedForGood(h, status, err.Error()), nil
	}
	key := client.ObjectKey{Namespace: namespace, Name: hooks.JobName(*h, w.run.Subject, status.Try)}
	final := !w.run.Now.Before(w.end(h, status))
	job, err := w.job(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return w.failed(h, status, fmt.Sprintf("Job %s was deleted before it finished", key)), nil
	case apierrors.IsForbidden(err):
		return w.failed(h, status, fmt.Sprintf("Lifeboat may not read Job %s: add %s to the chart's value hooks.namespaces", key, key.Namespace)), nil
	case err != nil:
		return status, fmt.Errorf("reading Job %s: %w", key, err)
	case job.Annotations[hooks.AnnotationUID] != string(w.run.Subject.UID):
		return w.failed(h, status, fmt.Sprintf("Job %s is not Lifeboat's: delete it", key)), nil
	}
	state, message := hooks.Outcome(job)
	switch {
	case state == v1beta1.HookSucceeded:
		return w.succeeded(h, status, message), nil
	case state == v1beta1.HookFailed:
		return w.failed(h, status, message), nil
	case !job.DeletionTimestamp.IsZero():
		return w.failed(h, status, fmt.Sprintf("Job %s was deleted before it finished", key)), nil
	case !final:
		status.Message = message
		w.out.Until = w.again(w.end(h, status))
		return status, nil
	}
	switch err := w.remove(ctx, job); {
	case rejection.Is(err): // activeDeadlineSeconds ends it
		message = firstLine(err.Error())
	case err != nil:
		return status, err
	}
	return w.failed(h, status, fmt.Sprintf("did not finish within %s: %s", hooks.Timeout(*h), message)), nil
}

// remove deletes a Job and, in the background, its pods.
func (w *hookPass) remove(ctx context.Context, job *batchv1.Job) error {
	err := w.o.Client.Delete(ctx, job,
		client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nil
}
