//go:build e2e

package real

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// What can happen to a database, its node and its volume.
const (
	deleted   = "old pod deleted"
	tainted   = "node tainted"
	unmounted = "kubelet has unmounted"
	detached  = "old VolumeAttachment deleted"
	attached  = "attached to another node"
	running   = "successor Running"
)

// timeline records when each of these happened first, by the revision of the API server's store:
// revisions order the changes of all objects (Kubernetes API concepts, "Resource versions").
type timeline struct {
	database
	node  string // the first
	began time.Time

	mu     sync.Mutex // guards what follows
	oldPod string     // its UID
	inUse  bool       // the kubelet has said that it uses the volume
	first  map[string]entry
	failed error
}

type entry struct {
	revision uint64
	at       time.Time // when the test received it, for its log
}

// follow records until the test ends.
func (s *stage) follow(d database, on ec2.Instance) *timeline {
	s.t.Helper()
	c, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		s.t.Fatal(err)
	}
	pod, err := c.CoreV1().Pods("default").Get(s.t.Context(), d.pod(), metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	l := &timeline{database: d, node: on.PrivateDNSName, began: time.Now(), oldPod: string(pod.UID), first: map[string]entry{}}
	ctx, one := s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + l.node}
	pods, err1 := c.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + d.pod()})
	nodes, err2 := c.CoreV1().Nodes().Watch(ctx, one)
	attachments, err3 := c.StorageV1().VolumeAttachments().Watch(ctx, metav1.ListOptions{})
	if err := errors.Join(err1, err2, err3); err != nil {
		s.t.Fatal(err)
	}
	for _, w := range []watch.Interface{pods, nodes, attachments} {
		go l.read(ctx, w)
	}
	s.until("the kubelet to report the volume", time.Minute, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.inUse, l.failed
	})
	return l
}

func (l *timeline) read(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for e := range w.ResultChan() {
		switch o := e.Object.(type) {
		case *corev1.Pod:
			l.podChanged(e.Type, o)
		case *corev1.Node:
			l.nodeChanged(o)
		case *storagev1.VolumeAttachment:
			l.attachmentChanged(e.Type, o)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() == nil {
		l.failed = errors.Join(l.failed, errors.New("a watch of the test has ended"))
	}
}

func (l *timeline) podChanged(e watch.EventType, p *corev1.Pod) {
	old := string(p.UID) == l.oldPod
	if old && e == watch.Deleted {
		l.note(deleted, p)
	}
	if !old && p.Status.Phase == corev1.PodRunning && e != watch.Deleted {
		l.note(running, p)
	}
}

func (l *timeline) nodeChanged(n *corev1.Node) {
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		l.note(tainted, n)
	}
	in := slices.Contains(n.Status.VolumesInUse, corev1.UniqueVolumeName("kubernetes.io/csi/"+sandbox.DiskDriver+"^"+l.Name))
	l.mu.Lock()
	was := l.inUse
	l.inUse = in
	l.mu.Unlock()
	if was && !in {
		l.note(unmounted, n)
	}
}

func (l *timeline) attachmentChanged(e watch.EventType, a *storagev1.VolumeAttachment) {
	if of := a.Spec.Source.PersistentVolumeName; of == nil || *of != l.Name {
		return
	}
	switch {
	case a.Spec.NodeName == l.node && e == watch.Deleted:
		l.note(detached, a)
	case a.Spec.NodeName != l.node && a.Status.Attached:
		l.note(attached, a)
	}
}

func (l *timeline) note(what string, o metav1.Object) {
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = errors.Join(l.failed, err)
	if _, known := l.first[what]; !known {
		l.first[what] = entry{revision, time.Now()}
	}
}

func (l *timeline) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.first[what]
	return known
}

// err is why the timeline is incomplete; nil if it is complete.
func (l *timeline) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// inOrder checks that all of it happened, in this order.
func (l *timeline) inOrder(t *testing.T, all ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	last := uint64(0)
	for _, what := range all {
		e, known := l.first[what]
		if !known || e.revision <= last {
			t.Errorf("%q did not happen, or not in this order: %v; the timeline has %s", what, all, l.text())
			return
		}
		last = e.revision
	}
}

func (l *timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text()
}

// text lists the entries in the order of their revisions. It needs the lock.
func (l *timeline) text() string {
	var all []string
	for _, what := range slices.SortedFunc(maps.Keys(l.first), func(a, b string) int {
		return cmp.Compare(l.first[a].revision, l.first[b].revision)
	}) {
		all = append(all, fmt.Sprintf("%s %s", what, since(l.began, l.first[what].at)))
	}
	return strings.Join(all, ", ")
}
