package ownerwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// Watcher watches the owners of the pods of the nodes it was asked about.
type Watcher struct {
	// ctx bounds all watches. The context of a single call does not: a caller may cancel
	// its context as soon as the call returns.
	ctx     context.Context
	kube    kubernetes.Interface
	changed func(node string)

	mu      sync.Mutex
	objects map[key]*object
	nodes   map[string]*interest
}

// interest is what a node's pods belong to.
type interest struct {
	objects map[key]bool
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim // nil: there is none
}

// New returns a Watcher whose watches end with ctx. It calls changed, from any
// goroutine, when the owners of a node's pods may have changed; changed may block. For a
// node and an owner that changes all the time, it calls about once a second.
func New(ctx context.Context, kube kubernetes.Interface, changed func(node string)) *Watcher {
	return &Watcher{ctx: ctx, kube: kube, changed: changed, objects: map[key]*object{}, nodes: map[string]*interest{}}
}

// Owners returns the owners of pods of a node, and whether all of them are
// known: for pods that a ReplicaSet controls, and those that were taken from
// one, the ReplicaSets with their Deployments; for the former also the claims
// that they mount. What does not exist is known to be absent, and so is what
// Lifeboat may not read. Where not all are known, or with an error, those that
// are known are returned.
//
// The first call about an owner starts its watch; the Watcher calls changed once the
// owner is known. The watch ends with Forget, or when it owns pods of no watched node.
// Callers share the objects, which hold only what a plan reads: do not change them.
func (w *Watcher) Owners(ctx context.Context, node string, pods []*corev1.Pod) (drain.Owners, bool, error) {
	owners, all := w.controllers(node, pods)
	claims, err := w.claims(ctx, node, pods)
	owners.Claims = claims
	return owners, all && err == nil, err
}

// Forget ends the interest in a node.
func (w *Watcher) Forget(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, ok := w.nodes[node]
	if !ok {
		return
	}
	delete(w.nodes, node)
	for k := range in.objects {
		w.leave(node, k)
	}
}

// Watched returns how many objects are watched.
func (w *Watcher) Watched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.objects)
}

func (w *Watcher) controllers(node string, pods []*corev1.Pod) (drain.Owners, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.nodes[node]
	if in == nil {
		in = &interest{objects: map[key]bool{}, claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}}
		w.nodes[node] = in
	}
	s := search{w: w, node: node, all: true, wanted: map[key]bool{}, seen: map[types.UID]bool{}}
	for _, pod := range pods {
		if ref, ok := replicaSetOf(pod); ok {
			s.above(pod.Namespace, ref)
		}
	}
	for k := range in.objects {
		if !s.wanted[k] {
			w.leave(node, k)
		}
	}
	in.objects = s.wanted
	return s.owners, s.all
}

// search gathers the owners of a node's pods. It needs the lock.
type search struct {
	w      *Watcher
	node   string
	owners drain.Owners
	all    bool // whether all are known
	wanted map[key]bool
	seen   map[types.UID]bool
}

// above adds a ReplicaSet, and the Deployment that controls it.
func (s *search) above(namespace string, ref metav1.OwnerReference) {
	set, ok := s.find(namespace, ref).(*appsv1.ReplicaSet)
	if !ok {
		return
	}
	s.owners.ReplicaSets = append(s.owners.ReplicaSets, set)
	controller := metav1.GetControllerOf(set)
	if controller == nil || controller.Kind != kindDeployment {
		return
	}
	if deployment, ok := s.find(namespace, *controller).(*appsv1.Deployment); ok {
		s.owners.Deployments = append(s.owners.Deployments, deployment)
	}
}

// find returns an object at its first mention; nil where it does not exist, is
// not known, or was found before.
func (s *search) find(namespace string, ref metav1.OwnerReference) metav1.Object {
	if s.seen[ref.UID] {
		return nil
	}
	s.seen[ref.UID] = true
	k := key{ref.Kind, namespace, ref.Name}
	s.wanted[k] = true
	o := s.w.join(s.node, k)
	s.all = s.all && o.known
	if o.is == nil || o.is.GetUID() != ref.UID {
		return nil // another may have its name by now
	}
	return o.is
}

// replicaSetOf returns the ReplicaSet that controls a pod, or from which it was
// taken.
func replicaSetOf(pod *corev1.Pod) (metav1.OwnerReference, bool) {
	if ref := metav1.GetControllerOf(pod); ref != nil {
		return *ref, ref.Kind == kindReplicaSet
	}
	from, ok := drain.SurgedFrom(pod)
	return metav1.OwnerReference{Kind: kindReplicaSet, Name: from.ReplicaSet, UID: from.UID}, ok
}

// claims returns the claims that the pods of ReplicaSets mount.
func (w *Watcher) claims(ctx context.Context, node string, pods []*corev1.Pod) ([]*corev1.PersistentVolumeClaim, error) {
	var (
		claims []*corev1.PersistentVolumeClaim
		errs   []error
		seen   = map[types.NamespacedName]bool{}
	)
	for _, pod := range pods {
		if ref := metav1.GetControllerOf(pod); ref == nil || ref.Kind != kindReplicaSet {
			continue
		}
		for i := range pod.Spec.Volumes {
			mount := pod.Spec.Volumes[i].PersistentVolumeClaim
			if mount == nil {
				continue
			}
			name := types.NamespacedName{Namespace: pod.Namespace, Name: mount.ClaimName}
			if seen[name] {
				continue
			}
			seen[name] = true
			claim, err := w.claim(ctx, node, name)
			if err != nil {
				errs = append(errs, err)
			} else if claim != nil {
				claims = append(claims, claim)
			}
		}
	}
	return claims, errors.Join(errs...)
}

// claim reads a claim once for a node; nil where there is none.
func (w *Watcher) claim(ctx context.Context, node string, name types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	w.mu.Lock()
	if in := w.nodes[node]; in != nil {
		if claim, ok := in.claims[name]; ok {
			w.mu.Unlock()
			return claim, nil
		}
	}
	w.mu.Unlock()

	claim, err := w.kube.CoreV1().PersistentVolumeClaims(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		claim = nil
	case err != nil:
		return nil, fmt.Errorf("reading claim %s: %w", name, err)
	default:
		claim = slimClaim(claim)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if in := w.nodes[node]; in != nil {
		in.claims[name] = claim
	}
	return claim, nil
}
