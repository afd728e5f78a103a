package model

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies an object.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string { return k.Kind + " " + strings.TrimPrefix(k.Namespace+"/"+k.Name, "/") }

func (k Key) resource() schema.GroupResource { return schema.GroupResource{Resource: k.Kind} }

// KindOf is the name of an object's Go type; for a list, that of its items; for metadata only,
// the kind in it.
func KindOf(o runtime.Object) string {
	if partial, ok := o.(*metav1.PartialObjectMetadata); ok {
		return partial.Kind
	}
	return strings.TrimSuffix(reflect.TypeOf(o).Elem().Name(), "List")
}

// KeyOf returns the key of an object.
func KeyOf(o client.Object) Key { return Key{KindOf(o), o.GetNamespace(), o.GetName()} }

// Change is the change of an object from one version to the next; Old is nil for a new object,
// New for a deleted one. Both are immutable.
type Change struct {
	Key      Key
	Old, New client.Object
}

// Server is the API server's store. Its objects are replaced, never changed.
type Server struct {
	// Now returns the time.
	Now func() time.Time
	// Changed are called for each change after it is made.
	Changed []func(Change)

	version int64
	uids    int
	objects map[Key]client.Object
}

// NewServer returns an empty store.
func NewServer(now func() time.Time) *Server {
	return &Server{Now: now, objects: map[Key]client.Object{}}
}

// Get returns the current object, or nil; do not change it.
func (s *Server) Get(k Key) client.Object { return s.objects[k] }

// Each calls f for each object of a kind, in any order.
func (s *Server) Each(kind string, f func(client.Object)) {
	for k, o := range s.objects {
		if k.Kind == kind {
			f(o)
		}
	}
}

// Create adds an object.
func (s *Server) Create(o client.Object) (client.Object, error) {
	k := KeyOf(o)
	if s.objects[k] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), k.Name)
	}
	o = clone(o)
	if o.GetUID() == "" {
		s.uids++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d-%s", s.uids, k.Name)))
	}
	o.SetCreationTimestamp(metav1.NewTime(s.Now().Truncate(time.Second)))
	o.SetGeneration(1)
	return s.set(k, o), nil
}

// Put replaces an object without a version check.
func (s *Server) Put(o client.Object) client.Object {
	k := KeyOf(o)
	if was := s.objects[k]; was != nil {
		o = clone(o)
		if specOf(was) == nil || !equality.Semantic.DeepEqual(specOf(was), specOf(o)) {
			o.SetGeneration(was.GetGeneration() + 1)
		}
	}
	return s.set(k, o)
}

// Remove removes an object.
func (s *Server) Remove(k Key) {
	was := s.objects[k]
	if was == nil {
		return
	}
	delete(s.objects, k)
	s.version++
	s.notify(Change{Key: k, Old: was})
}

func (s *Server) set(k Key, o client.Object) client.Object {
	was := s.objects[k]
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.objects[k] = o
	s.notify(Change{Key: k, Old: was, New: o})
	return o
}

func (s *Server) notify(c Change) {
	for _, changed := range s.Changed {
		changed(c)
	}
}

// Stop has the options of a deletion.
type Stop struct {
	Grace *int64
	UID   *types.UID
	// Version is the required resource version.
	Version *string
}

// Delete deletes an object; a pod gracefully.
func (s *Server) Delete(k Key, stop Stop) error {
	was := s.objects[k]
	switch {
	case was == nil:
		return apierrors.NewNotFound(k.resource(), k.Name)
	case stop.UID != nil && *stop.UID != was.GetUID():
		return apierrors.NewConflict(k.resource(), k.Name, errors.New("the UID in the precondition is another"))
	case stop.Version != nil && *stop.Version != was.GetResourceVersion():
		return apierrors.NewConflict(k.resource(), k.Name, errors.New("the resource version in the precondition is another"))
	}
	pod, ok := was.(*corev1.Pod)
	if !ok {
		s.Remove(k)
		return nil
	}
	s.stop(pod, stop.Grace)
	return nil
}

// stop starts the graceful deletion of a pod, or shortens its grace (k8s.io/apiserver
// pkg/registry/rest, BeforeDelete).
func (s *Server) stop(pod *corev1.Pod, asked *int64) {
	grace := graceOf(pod, asked)
	now := s.Now()
	end := now.Add(time.Duration(grace) * time.Second)
	if was := pod.DeletionTimestamp; was != nil {
		had := *pod.DeletionGracePeriodSeconds
		if asked == nil || grace >= had {
			return
		}
		end = was.Add(time.Duration(grace-had) * time.Second)
		if grace > 0 && end.Before(now) {
			grace, end = 1, now.Add(time.Second)
		}
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if immediate := grace == 0 || finished || pod.Spec.NodeName == ""; immediate && len(pod.Finalizers) == 0 {
		s.Remove(KeyOf(pod))
		return
	} else if immediate {
		grace, end = 0, now
	}
	next := pod.DeepCopy()
	at := metav1.NewTime(end.Truncate(time.Second))
	next.DeletionTimestamp, next.DeletionGracePeriodSeconds = &at, &grace
	s.Put(next)
}

// graceOf is the effective grace of a deletion, in seconds.
func graceOf(pod *corev1.Pod, asked *int64) int64 {
	switch {
	case asked != nil:
		return *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return 30
}

func clone(o client.Object) client.Object {
	c, _ := o.DeepCopyObject().(client.Object)
	return c
}

func empty(o client.Object) client.Object {
	e, _ := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	return e
}

func field(o client.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

func specOf(o client.Object) any {
	if v := field(o, "Spec"); v.IsValid() {
		return v.Interface()
	}
	return nil
}

// withStatusOf returns an object with the status of another.
func withStatusOf(o, other client.Object) client.Object {
	o = clone(o)
	field(o, "Status").Set(field(clone(other), "Status"))
	return o
}

func hasStatusSubresource(kind string) bool {
	return kind == "Interruption" || kind == "InterruptionPolicy" || kind == "Node" || kind == "Pod"
}
