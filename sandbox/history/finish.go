package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// stillFor is how long no pod and no Interruption changes at the end of a history.
	stillFor   = 5 * time.Second
	finishPoll = 500 * time.Millisecond
)

// finish waits until nothing more happens, or the last deadline has passed. It ends reclaimed instances
// that are empty, as users and Karpenter do.
func (p *Player) finish(ctx context.Context) error {
	limit := time.Now().Add(spotNotice + p.Delay)
	var last map[string]string
	var failed error
	since := time.Now()
	for time.Now().Before(limit) {
		now, err := p.look(ctx)
		failed = err
		if err != nil { // the last fault was the end of the API server, and it is starting
			if !sleep.For(ctx, finishPoll) {
				return context.Cause(ctx)
			}
			continue
		}
		left, err := p.endEmpty(now)
		if err != nil {
			return err
		}
		if is := now.versions(); !maps.Equal(is, last) {
			last, since = is, time.Now()
		}
		if left == 0 && !now.open() && time.Since(since) >= stillFor {
			return nil
		}
		if !sleep.For(ctx, finishPoll) {
			return context.Cause(ctx)
		}
	}
	return failed // otherwise the judge says what did not happen
}

// view is the state of a sandbox.
type view struct {
	pods      []corev1.Pod
	records   map[string]v1beta1.Interruption // by instance
	instances map[string]ec2.Instance
}

func (p *Player) look(ctx context.Context) (view, error) {
	v := view{records: map[string]v1beta1.Interruption{}, instances: map[string]ec2.Instance{}}
	var pods corev1.PodList
	var records v1beta1.InterruptionList
	if err := p.kube.List(ctx, &pods, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return v, fmt.Errorf("listing pods: %w", err)
	}
	if err := p.kube.List(ctx, &records); err != nil {
		return v, fmt.Errorf("listing Interruptions: %w", err)
	}
	v.pods = pods.Items
	for _, in := range p.Sandbox.EC2().Instances() {
		v.instances[in.ID] = in
	}
	for _, r := range records.Items {
		if _, ours := v.instances[r.Name]; ours || !p.KeepRecords {
			v.records[r.Name] = r
		}
	}
	return v, nil
}

// versions identify what must be still.
func (v view) versions() map[string]string {
	out := map[string]string{}
	for _, pod := range v.pods {
		out[string(pod.UID)] = fmt.Sprint(pod.DeletionTimestamp.IsZero(), pod.Spec.NodeName)
	}
	for name, r := range v.records {
		out[name] = r.ResourceVersion
	}
	return out
}

// open reports whether the Interruption of an instance that has ended is not completed.
func (v view) open() bool {
	for name, r := range v.records {
		if r.Status.CompletionTime == nil && v.instances[name].State == ec2.Terminated {
			return true
		}
	}
	return false
}

// leaves reports whether a pod must leave a node before its instance ends.
func leaves(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !ended && (owner == nil || owner.Kind != string(DaemonSet))
}

// endEmpty ends reclaimed instances whose pods have left, and returns how many are left.
func (p *Player) endEmpty(v view) (left int, err error) {
	var ids []string
	for _, in := range v.instances {
		if in.Notice.Action == "" || in.State == ec2.Terminated || in.State == ec2.ShuttingDown {
			continue
		}
		left++
		r, known := v.records[in.ID]
		has := slices.ContainsFunc(v.pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == in.PrivateDNSName && leaves(&pod) })
		if known && r.Status.Decision != nil && !has {
			ids = append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return left, nil
	}
	if _, err := p.Sandbox.EC2().Terminate(ids); err != nil {
		return left, fmt.Errorf("ending empty instances: %w", err)
	}
	return left, nil
}
