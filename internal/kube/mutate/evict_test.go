package mutate

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var pods = schema.GroupResource{Resource: "pods"}

// refusedByBudget is the API server's error: kubernetes
// pkg/registry/core/pod/storage/eviction.go, createTooManyRequestsError.
func refusedByBudget() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "needs 2 healthy pods"}}
	return err
}

const denies = `admission webhook "validate.example" denied the request: no`

// denied is the API server's error for a webhook that gives no reason.
func denied(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: denies}}
}

func TestEvictionResponses(t *testing.T) {
	tests := map[string]struct {
		err  error
		want Answer
		fail bool
	}{
		"accepted":                            {want: Answer{Asked: true}},
		"the pod is gone":                     {err: apierrors.NewNotFound(pods, "a"), want: Answer{Asked: true}},
		"another pod has its name":            {err: apierrors.NewConflict(pods, "a", errors.New("uid")), want: Answer{Asked: true}},
		"a budget refuses":                    {err: refusedByBudget(), want: Answer{Refused: "Cannot evict pod as it would violate the pod's disruption budget."}},
		"the server is busy":                  {err: apierrors.NewTooManyRequests("busy", 7), want: Answer{RetryAfter: 7 * time.Second}},
		"the server is busy and does not say": {err: apierrors.NewTooManyRequests("busy", 0), want: Answer{RetryAfter: time.Second}},
		"the server times out":                {err: apierrors.NewServerTimeout(pods, "create", 3), want: Answer{RetryAfter: 3 * time.Second}},
		"not allowed":                         {err: apierrors.NewForbidden(pods, "a", errors.New("rbac")), want: Answer{Refused: `pods "a" is forbidden: rbac`}},
		"several budgets":                     {err: apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget")), want: Answer{Refused: "Internal error occurred: This pod has more than one PodDisruptionBudget"}},
		"a webhook denies with 400":           {err: denied(http.StatusBadRequest), want: Answer{Refused: denies}},
		"a webhook denies with 403":           {err: denied(http.StatusForbidden), want: Answer{Refused: denies}},
		"a webhook denies with 404":           {err: denied(http.StatusNotFound), want: Answer{Refused: denies}},
		"a webhook denies with 409":           {err: denied(http.StatusConflict), want: Answer{Refused: denies}},
		"a webhook denies with 429":           {err: denied(http.StatusTooManyRequests), want: Answer{Refused: denies}},
		"a webhook denies with 500":           {err: denied(http.StatusInternalServerError), want: Answer{Refused: denies}},
		"not authenticated":                   {err: apierrors.NewUnauthorized("token"), fail: true},
		"etcd changes its leader":             {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: leader changed"}}, fail: true},
		"it cannot be reached":                {err: errors.New("connection refused"), fail: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asked *policyv1.Eviction
			c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, sub string, _, o client.Object, _ ...client.SubResourceCreateOption) error {
					asked, _ = o.(*policyv1.Eviction)
					return tc.err
				},
			}).Build()
			grace := int64(5)
			got, err := Evict(t.Context(), c, pod(), &grace)
			if (err != nil) != tc.fail {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if uid := *asked.DeleteOptions.Preconditions.UID; uid != "uid-a" {
				t.Errorf("the request is not tied to the pod: UID %q", uid)
			}
			if *asked.DeleteOptions.GracePeriodSeconds != 5 {
				t.Errorf("grace %d", *asked.DeleteOptions.GracePeriodSeconds)
			}
		})
	}
}

func TestDeleteUsesPodUIDAndGrace(t *testing.T) {
	var got client.DeleteOptions
	c := fake.NewClientBuilder().WithObjects(pod()).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			got.ApplyOptions(opts)
			return nil
		},
	}).Build()
	grace := int64(0)
	answer, err := Delete(t.Context(), c, pod(), &grace)
	if err != nil || !answer.Asked {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	if *got.Preconditions.UID != "uid-a" || *got.GracePeriodSeconds != 0 {
		t.Errorf("options %+v", got)
	}
}

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a"}}
}
