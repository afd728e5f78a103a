package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

// startJob creates the Job of a try. A Job of that name with this record's UID
// was created before a restart, and may have finished already.
func (w *hookPass) startJob(ctx context.Context, h *v1alpha1.Hook, status *v1alpha1.HookStatus) error {
	job, err := hooks.Job(*h, w.run.Subject, status.Try, w.o.Namespace)
	if err != nil {
		return &startError{err, true}
	}
	key, uid := client.ObjectKeyFromObject(job), job.Annotations[hooks.AnnotationUID]
	if account := job.Spec.Template.Spec.ServiceAccountName; key.Namespace == w.o.Namespace && slices.Contains(ownAccounts(), account) {
		return &startError{fmt.Errorf("its Job may not run as Lifeboat's own ServiceAccount %s: write another serviceAccountName in job.template", account), true}
	}
	switch err := w.o.Client.Create(ctx, job); {
	case apierrors.IsAlreadyExists(err):
		if job, err = w.job(ctx, key, true); err != nil {
			return fmt.Errorf("reading Job %s: %w", key, err)
		}
		if job.Annotations[hooks.AnnotationUID] != uid {
			return &startError{fmt.Errorf("a Job %s is in the way that is not Lifeboat's: delete it", key), false}
		}
		w.out.Until = w.run.Now.Add(requeueSoon)
	case err == nil && key.Namespace != w.o.Namespace:
		w.out.Until = w.run.Now.Add(unwatchedInterval)
	case rejection.Is(err):
		return &startError{explainRefused(err, key), false}
	case err != nil:
		return fmt.Errorf("making Job %s: %w", key, err)
	}
	_, status.Message = hooks.Outcome(job)
	return nil
}

// ownAccounts are the chart's ServiceAccounts. A hook must not run with their
// permissions.
func ownAccounts() []string { return []string{"lifeboat-controller", "lifeboat-agent"} }

// unwatchedInterval is how often a Job outside Lifeboat's own namespace is polled: the
// watch covers that namespace only.
const unwatchedInterval = 3 * time.Second

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

// job reads a Job, from the cache unless final is set. The cache may lag, may
// not cover the namespace, or may have lost its watch, so a final verdict needs
// a live read.
func (w *hookPass) job(ctx context.Context, key client.ObjectKey, final bool) (*batchv1.Job, error) {
	var job batchv1.Job
	if !final && w.o.Client.Get(ctx, key, &job) == nil {
		return &job, nil
	}
	if err := w.o.Live.Get(ctx, key, &job); err != nil {
		return nil, err
	}
	return &job, nil
}

// again is when to check an unfinished Job next: at its deadline, or sooner if
// its namespace is not watched.
func (w *hookPass) again(key client.ObjectKey, end time.Time) time.Time {
	if soon := w.run.Now.Add(unwatchedInterval); key.Namespace != w.o.Namespace && soon.Before(end) {
		return soon
	}
	return end
}

// checkJob reads the state of a try's Job.
func (w *hookPass) checkJob(ctx context.Context, h *v1alpha1.Hook, status v1alpha1.HookStatus) (v1alpha1.HookStatus, error) {
	key := client.ObjectKey{Namespace: w.o.Namespace, Name: hooks.JobName(*h, w.run.Subject, status.Try)}
	if h.Job != nil && h.Job.Namespace != "" {
		key.Namespace = h.Job.Namespace
	}
	final := !w.run.Now.Before(w.end(h, status))
	job, err := w.job(ctx, key, final)
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
	case state == v1alpha1.HookSucceeded:
		return w.succeeded(h, status, message), nil
	case state == v1alpha1.HookFailed:
		return w.failed(h, status, message), nil
	case !job.DeletionTimestamp.IsZero():
		return w.failed(h, status, fmt.Sprintf("Job %s was deleted before it finished", key)), nil
	case !final:
		status.Message = message
		w.out.Until = w.again(key, w.end(h, status))
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
