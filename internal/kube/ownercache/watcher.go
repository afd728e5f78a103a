package ownercache

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

// Watcher watches the owners of the pods of the requested nodes.
type Watcher struct {
	// ctx bounds all watches. The context of a single call does not: a caller may cancel
	// its context as soon as the call returns.
	ctx     context.Context
	kube    kubernetes.Interface
	changed func(node string)

	mu      sync.Mutex
	objects map[key]*object
	nodes   map[string]*nodeState
}

// nodeState is what the pods of a node need.
type nodeState struct {
	objects map[key]bool
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim // nil: it does not exist
}

// New returns a Watcher whose watches end with ctx. It calls changed, from any
// goroutine, when the owners of a node's pods may have changed; changed may
// block. For an owner that changes constantly, it calls about once a second per
// node.
func New(ctx context.Context, kube kubernetes.Interface, changed func(node string)) *Watcher {
	return &Watcher{ctx: ctx, kube: kube, changed: changed, objects: map[key]*object{}, nodes: map[string]*nodeState{}}
}

// Owners returns the owners of a node's pods, and whether all of them are
// known. For pods of a ReplicaSet, and surged pods that were detached from one,
// these are the ReplicaSets and their Deployments; for the former also the
// mounted PersistentVolumeClaims. Objects that do not exist or may not be read
// count as absent. If some are unknown or an error occurs, the known ones are
// returned.
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

// Forget ends the watches for a node.
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
		in = &nodeState{objects: map[key]bool{}, claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}}
		w.nodes[node] = in
	}
	s := search{w: w, node: node, all: true, wanted: map[key]bool{}, seen: map[types.UID]bool{}}
	for _, pod := range pods {
		if ref, ok := replicaSetOf(pod); ok {
			s.addReplicaSet(pod.Namespace, ref)
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

// search collects the owners of a node's pods. The caller holds the lock.
type search struct {
	w      *Watcher
	node   string
	owners drain.Owners
	all    bool // whether all are known
	wanted map[key]bool
	seen   map[types.UID]bool
}

// addReplicaSet adds a ReplicaSet and the Deployment that controls it.
func (s *search) addReplicaSet(namespace string, ref metav1.OwnerReference) {
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

// find returns an object on its first use; nil if it does not exist, is
// unknown, or was returned before.
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
		return nil // a new object may have the same name
	}
	return o.is
}

// replicaSetOf returns the ReplicaSet that controls a pod, or from which a
// surge detached it.
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

// claim reads a claim once per node; nil if it does not exist.
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
