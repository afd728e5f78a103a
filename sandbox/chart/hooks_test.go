//go:build e2e

package chart_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// hookNamespace is one of hooks.namespaces in the installed chart.
const hookNamespace = "kube-public"

// TestHookJobsAreLimited creates Jobs as the controller does, beginning with one
// that is allowed.
func TestHookJobsAreLimited(t *testing.T) {
	admin(t)
	c := clientOf(t, as(t, chart.ControllerAccount, nil))
	yes := true
	create := func(change func(*batchv1.Job)) error {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "hook", Namespace: hookNamespace, Labels: map[string]string{"team": "a"}},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "kafka-admin",
				Containers: []corev1.Container{{Name: "main", Image: "tool:1"}},
			}}},
		}
		change(job)
		return c.Create(t.Context(), job, client.DryRunAll)
	}
	pod := func(change func(*corev1.PodSpec)) func(*batchv1.Job) {
		return func(j *batchv1.Job) { change(&j.Spec.Template.Spec) }
	}
	check(t, create(func(*batchv1.Job) {}), "")
	until(t, "the policy to be in force", func() (bool, error) {
		err := create(pod(func(p *corev1.PodSpec) { p.HostPID = true }))
		return err != nil, err
	})
	for name, test := range map[string]struct {
		change func(*batchv1.Job)
		want   string
	}{
		"an ordinary one":       {func(*batchv1.Job) {}, ""},
		"elsewhere":             {func(j *batchv1.Job) { j.Namespace = "kube-node-lease" }, "cannot create resource"},
		"where Lifeboat is":     {func(j *batchv1.Job) { j.Namespace = chart.Namespace }, "cannot create resource"},
		"as the controller":     {pod(func(p *corev1.PodSpec) { p.ServiceAccountName = "lifeboat-controller" }), "may not run as Lifeboat's own ServiceAccount"},
		"by the deprecated way": {pod(func(p *corev1.PodSpec) { p.ServiceAccountName, p.DeprecatedServiceAccount = "", "lifeboat-agent" }), "may not run as Lifeboat's own ServiceAccount"},
		"in the node's network": {pod(func(p *corev1.PodSpec) { p.HostNetwork = true }), "may not use hostNetwork"},
		"among its processes":   {pod(func(p *corev1.PodSpec) { p.HostPID = true }), "may not use hostNetwork, hostPID"},
		"with its IPC":          {pod(func(p *corev1.PodSpec) { p.HostIPC = true }), "may not use hostNetwork, hostPID, hostIPC"},
		"on its port": {pod(func(p *corev1.PodSpec) {
			p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}
		}), "a hostPort"},
		"with its files": {pod(func(p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}), "may not mount a hostPath"},
		"privileged": {pod(func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "first", Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}}
		}), "may not be privileged"},
		"with capabilities": {pod(func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}), "or have more capabilities"},
		"labelled as Lifeboat": {func(j *batchv1.Job) {
			j.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "lifeboat"}
		}, "no label app.kubernetes.io/"},
	} {
		t.Run(name, func(t *testing.T) { check(t, create(test.change), test.want) })
	}
}
