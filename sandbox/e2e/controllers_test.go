//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// job is a Job with one pod that runs permanently, and is killed at the end of its grace. One failure of
// a pod ends the Job, except a disruption.
func job(name string, grace int64, mode batchv1.CompletionMode) *batchv1.Job {
	none, one, replacement := int32(0), int32(1), batchv1.Failed
	pod := template(map[string]string{"app": name}, time.Hour)
	pod.Annotations[kwok.StopSecondsAnnotation] = strconv.Itoa(int(grace) + 3600)
	pod.Spec.TerminationGracePeriodSeconds, pod.Spec.RestartPolicy = &grace, corev1.RestartPolicyNever
	j := &batchv1.Job{Spec: batchv1.JobSpec{
		BackoffLimit: &none, Completions: &one, Parallelism: &one, CompletionMode: &mode, PodReplacementPolicy: &replacement, Template: pod,
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}},
	}}
	j.Namespace, j.Name = "default", name
	return j
}

// goesOn waits until a Job has another pod, on another node, and has not counted a failure.
func (r *rig) goesOn(name string, from ec2.Instance) {
	r.t.Helper()
	r.until("Job "+name+" to go on", 4*time.Minute, func(ctx context.Context) (bool, error) {
		var j batchv1.Job
		var pods corev1.PodList
		if err := r.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, &j); err != nil {
			return false, err
		}
		if err := r.client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"app": name}); err != nil {
			return false, err
		}
		for _, c := range j.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				r.t.Fatalf("Job %s has failed: %s", name, c.Message)
			}
		}
		next := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return p.DeletionTimestamp == nil && p.Spec.NodeName != "" && p.Spec.NodeName != from.PrivateDNSName
		})
		return next && j.Status.Failed == 0, fmt.Errorf("%+v", j.Status)
	})
}

// TestControllersGoOnDuringReclaim reclaims a node with a pod of a DaemonSet without tolerations, and pods
// of Jobs that a budget holds until their last call.
func TestControllersGoOnDuringReclaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := r.launch(1)[0]
	pod := template(map[string]string{"app": "logs"}, 0)
	logs := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: deployment("logs", 1, 0).Spec.Selector, Template: pod}}
	logs.Namespace, logs.Name = "default", "logs"
	r.apply(logs, job("batch", 10, batchv1.NonIndexedCompletion), budget("batch", 1), job("indexed", 10, batchv1.IndexedCompletion), budget("indexed", 1))
	r.waitPods(in, 3)
	r.launch(1)
	r.reclaim(in)
	r.until("the node to be cordoned", 30*time.Second, func(ctx context.Context) (bool, error) {
		node, err := r.node(ctx, in)
		return err == nil && node.Spec.Unschedulable, err
	})
	daemon := func() *corev1.Pod {
		for _, p := range r.podsOn(in) {
			if p.Labels["app"] == "logs" && p.DeletionTimestamp == nil {
				return &p
			}
		}
		return nil
	}
	was := daemon()
	if was == nil {
		t.Fatal("the DaemonSet has no pod on the interrupted node")
	}
	if err := r.client.Delete(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	r.until("the DaemonSet's pod to come back", 30*time.Second, func(ctx context.Context) (bool, error) {
		var set appsv1.DaemonSet
		err := r.client.Get(ctx, client.ObjectKeyFromObject(logs), &set)
		is := daemon()
		return err == nil && is != nil && is.UID != was.UID && set.Status.DesiredNumberScheduled == 2, fmt.Errorf("%+v %w", set.Status, err)
	})
	r.goesOn("batch", in)
	r.goesOn("indexed", in)
}

// TestJobsGoOnAfterTheirInstanceStops stops an instance whose Node stays: no kubelet ends the phase of its
// pods, for which Jobs with podReplacementPolicy Failed wait.
func TestJobsGoOnAfterTheirInstanceStops(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: 1, Max: 1}
	in := r.launchAll(one)[0]
	r.apply(job("batch", 600, batchv1.NonIndexedCompletion), job("indexed", 600, batchv1.IndexedCompletion))
	r.waitPods(in, 2)
	r.launchAll(one)
	if _, err := r.EC2().Stop([]string{in.ID}); err != nil {
		t.Fatal(err)
	}
	r.goesOn("batch", in)
	r.goesOn("indexed", in)
}
