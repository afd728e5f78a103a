package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// deployment is a Deployment whose pods need the time stop to stop.
func deployment(name string, replicas int32, stop time.Duration) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels, stop),
		},
	}
}

func statefulSet(name string, replicas int32, stop time.Duration) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels, stop),
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

func template(labels map[string]string, stop time.Duration) corev1.PodTemplateSpec {
	grace := int64(30)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
			kwok.StopSecondsAnnotation: strconv.Itoa(int(stop.Seconds())),
		}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: "example/app:1"}},
		},
	}
}

func budget(name string, minAvailable int) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
}

// waitPods waits until n pods are Ready on an instance's node.
func (r *rig) waitPods(in ec2.Instance, n int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d pods to be Ready", n), time.Minute, func(context.Context) (bool, error) {
		ready := 0
		for _, pod := range r.podsOn(in) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready == n, fmt.Errorf("%d Ready", ready)
	})
}

// podRecords records the history of every pod from a separate watch.
type podRecords struct {
	blind bool // the API server was down, so the watch may have missed changes

	mu   sync.Mutex // guards pods
	pods map[types.UID]*podRecord
}

// podRecord is the history of one pod.
type podRecord struct {
	name, node string
	asked      time.Time // when its deletion was first requested
	grace      int64     // its grace period, in seconds
	gone       time.Time
}

func (r *rig) watchPods() *podRecords {
	r.t.Helper()
	kube, err := kubernetes.NewForConfig(r.RESTConfig())
	if err != nil {
		r.t.Fatal(err)
	}
	l := &podRecords{pods: map[types.UID]*podRecord{}}
	pods := cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), "pods", "default", fields.Everything())
	informer := reflector.NewInformer(pods, &corev1.Pod{}, 0, cache.Indexers{})
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: l.seen,
		UpdateFunc: func(old, pod any) {
			if isAnother(old, pod) { // the watch missed the deletion of a StatefulSet's earlier pod
				l.lost(old)
			}
			l.seen(pod)
		},
		DeleteFunc: l.lost,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	go informer.RunWithContext(r.t.Context())
	if !cache.WaitForCacheSync(r.t.Context().Done(), informer.HasSynced) {
		r.t.Fatal("the pod watch did not sync")
	}
	return l
}

// isAnother reports whether two pods of one name have different UIDs.
func isAnother(old, pod any) bool {
	was, ok := old.(*corev1.Pod)
	is, also := pod.(*corev1.Pod)
	return ok && also && was.UID != is.UID
}

func (l *podRecords) seen(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.pods[pod.UID]
	if a == nil {
		a = &podRecord{name: pod.Name}
		l.pods[pod.UID] = a
	}
	a.node = pod.Spec.NodeName
	if pod.DeletionTimestamp != nil && a.asked.IsZero() {
		a.grace = *pod.DeletionGracePeriodSeconds
		a.asked = pod.DeletionTimestamp.Add(-time.Duration(a.grace) * time.Second)
	}
}

func (l *podRecords) lost(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	l.seen(object)
	if pod, ok := object.(*corev1.Pod); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pods[pod.UID].gone = time.Now()
	}
}

// on returns the records of the pods that are or were on a node.
func (l *podRecords) on(node string) []podRecord {
	return l.where(func(a podRecord) bool { return a.node == node })
}

// asked returns the records of the pods on an instance's node whose deletion was requested.
func (l *podRecords) asked(in ec2.Instance) []podRecord {
	return l.where(func(a podRecord) bool { return a.node == in.PrivateDNSName && !a.asked.IsZero() })
}

// notOn returns the records of all other pods.
func (l *podRecords) notOn(node string) []podRecord {
	return l.where(func(a podRecord) bool { return a.node != node })
}

func (l *podRecords) where(matches func(podRecord) bool) []podRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []podRecord
	for _, a := range l.pods {
		if matches(*a) {
			found = append(found, *a)
		}
	}
	return found
}
