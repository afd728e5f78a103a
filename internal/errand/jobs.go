package errand

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
	"github.com/lifeboat-dev/lifeboat/internal/hook"
	"github.com/lifeboat-dev/lifeboat/internal/refusal"
)

// startJob makes the Job of a try. One that is there already was made before a
// crash, unless it is somebody else's; it may have ended already.
func (w *walk) startJob(ctx context.Context, h *v1alpha1.Hook, status *v1alpha1.HookStatus) error {
	job, err := hook.Job(*h, w.run.Subject, status.Try, w.o.Namespace)
	if err != nil {
		return &refused{err, true}
	}
	key, uid := client.ObjectKeyFromObject(job), job.Annotations[hook.AnnotationUID]
	if account := job.Spec.Template.Spec.ServiceAccountName; key.Namespace == w.o.Namespace && slices.Contains(ownAccounts(), account) {
		return &refused{fmt.Errorf("its Job may not run as Lifeboat's own ServiceAccount %s: write another serviceAccountName in job.template", account), true}
	}
	switch err := w.o.Client.Create(ctx, job); {
	case apierrors.IsAlreadyExists(err):
		if job, err = w.job(ctx, key, true); err != nil {
			return fmt.Errorf("reading Job %s: %w", key, err)
		}
		if job.Annotations[hook.AnnotationUID] != uid {
			return &refused{fmt.Errorf("a Job %s is in the way that is not Lifeboat's: delete it", key), false}
		}
		w.out.Until = w.run.Now.Add(soon)
	case err == nil && key.Namespace != w.o.Namespace:
		w.out.Until = w.run.Now.Add(elsewhere)
	case refusal.Is(err):
		return &refused{sayRefused(err, key), false}
	case err != nil:
		return fmt.Errorf("making Job %s: %w", key, err)
	}
	_, status.Message = hook.Outcome(job)
	return nil
}

// ownAccounts are the chart's ServiceAccounts. A policy's author must not get at
// what they may do.
func ownAccounts() []string { return []string{"lifeboat-controller", "lifeboat-agent"} }

// elsewhere is how often a Job in another namespace than Lifeboat's own is looked
// at: only those of its own are watched.
const elsewhere = 3 * time.Second

func sayRefused(err error, key client.ObjectKey) error {
	text := firstLine(err.Error())
	switch {
	case refusal.ByAdmission(err): // whatever code it chose
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %s: make it, or write another job.namespace in the policy", key.Namespace)
	case apierrors.IsForbidden(err) && strings.Contains(text, "cannot create resource"):
		return fmt.Errorf("its Job may not be made in namespace %s: add it to the chart's value hooks.namespaces", key.Namespace)
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return fmt.Errorf("the quota of namespace %s leaves no room for its Job: raise it, or write another job.namespace in the policy: %s", key.Namespace, text)
	}
	return fmt.Errorf("the API server does not take its Job: mend job.template in the policy, or what refuses it: %s", text)
}

// job reads a Job, from the cache as long as that is no judgement: it may not
// know the Job yet, not have its namespace, or have lost its watch.
func (w *walk) job(ctx context.Context, key client.ObjectKey, final bool) (*batchv1.Job, error) {
	var job batchv1.Job
	if !final && w.o.Client.Get(ctx, key, &job) == nil {
		return &job, nil
	}
	if err := w.o.Live.Get(ctx, key, &job); err != nil {
		return nil, err
	}
	return &job, nil
}

// again is when to look at a Job again that has not ended: when its time is up,
// unless nobody tells before that it has ended.
func (w *walk) again(key client.ObjectKey, end time.Time) time.Time {
	if soon := w.run.Now.Add(elsewhere); key.Namespace != w.o.Namespace && soon.Before(end) {
		return soon
	}
	return end
}

// lookAtJob looks at how the Job of a try has come out.
func (w *walk) lookAtJob(ctx context.Context, h *v1alpha1.Hook, status v1alpha1.HookStatus) (v1alpha1.HookStatus, error) {
	key := client.ObjectKey{Namespace: w.o.Namespace, Name: hook.JobName(*h, w.run.Subject, status.Try)}
	if h.Job != nil && h.Job.Namespace != "" {
		key.Namespace = h.Job.Namespace
	}
	final := !w.run.Now.Before(w.end(h, status))
	job, err := w.job(ctx, key, final)
	switch {
	case apierrors.IsNotFound(err):
		return w.failed(h, status, fmt.Sprintf("Job %s was deleted before it had ended", key)), nil
	case apierrors.IsForbidden(err):
		return w.failed(h, status, fmt.Sprintf("Job %s may not be read: add %s to the chart's value hooks.namespaces", key, key.Namespace)), nil
	case err != nil:
		return status, fmt.Errorf("reading Job %s: %w", key, err)
	case job.Annotations[hook.AnnotationUID] != string(w.run.Subject.UID):
		return w.failed(h, status, fmt.Sprintf("Job %s is not Lifeboat's: delete it", key)), nil
	}
	state, message := hook.Outcome(job)
	switch {
	case state == v1alpha1.HookSucceeded:
		return w.succeeded(h, status, message), nil
	case state == v1alpha1.HookFailed:
		return w.failed(h, status, message), nil
	case !job.DeletionTimestamp.IsZero():
		return w.failed(h, status, fmt.Sprintf("Job %s was deleted before it had ended", key)), nil
	case !final:
		status.Message = message
		w.out.Until = w.again(key, w.end(h, status))
		return status, nil
	}
	switch err := w.remove(ctx, job); {
	case refusal.Is(err): // its own deadline ends it
		message = firstLine(err.Error())
	case err != nil:
		return status, err
	}
	return w.failed(h, status, fmt.Sprintf("did not finish within %s: %s", hook.Timeout(*h), message)), nil
}

// remove deletes a Job and, in the background, its pods.
func (w *walk) remove(ctx context.Context, job *batchv1.Job) error {
	err := w.o.Client.Delete(ctx, job,
		client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nil
}
