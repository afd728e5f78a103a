// Package try sends requests that Lifeboat's admission policies must refuse, as dry runs.
package try

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// tested is the name that the requests use.
const tested = "lifeboat-doctor"

// Interruption writes an approval in another user's name.
func Interruption(ctx context.Context, c client.Client) error {
	now := time.Now()
	return c.Create(ctx, &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000000"},
		Spec: v1beta1.InterruptionSpec{
			InstanceID: "i-00000000000000000", Approval: &v1beta1.UserAction{By: tested, Time: metav1.NewMicroTime(now)},
			Notices: []v1beta1.Notice{{
				ID: tested, Kind: notice.KindRebalanceRecommendation, Source: notice.SourceQueue, Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now),
			}},
		},
	}, client.DryRunAll)
}

// Node labels a node with a label that is not Lifeboat's.
func Node(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := []byte(`{"metadata":{"labels":{"example.com/` + tested + `":""}}}`)
	return c.Patch(ctx, node, client.RawPatch("application/merge-patch+json", patch), client.DryRunAll)
}

// Job creates a Job in the network of its node.
func Job(ctx context.Context, c client.Client, namespace string) error {
	return c.Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tested},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}, client.DryRunAll)
}
