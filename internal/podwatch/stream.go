package podwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
	"github.com/lifeboat-dev/lifeboat/internal/listwatch"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// pause is the least time between two requests of which the first got nowhere,
	// and longest the most where the API server's answer was an error; up to as much
	// again is added at random, so that many watches do not come back as one.
	pause, longestPause = 500 * time.Millisecond, 15 * time.Second
	// lasts is the least that a watch is asked to last; up to as much again is added
	// (as client-go's reflectors do it).
	lasts = 5 * time.Minute
	// held is for how long at most a watch does not begin because it is not calm: most
	// pods have 30 s to stop, and some of a storm's are asked half a minute after their list.
	held = time.Minute
	// aged is from when on a list is made anew before a watch begins with it. To begin a
	// watch the API server goes through all that has happened to any pod since: a thousand
	// evictions a watch, where a thousand nodes are drained, and for a list it has an index.
	aged = 2 * time.Second
)

// stream keeps a nodeWatch up to date. It is client-go's Reflector for one purpose:
// that one has four goroutines, each with a stack that has grown, and a buffer for
// every watch; here there is one goroutine, beside the one that HTTP/2 has for every
// request, and a buffer only while an event is being read.
type stream struct {
	*nodeWatch
	client rest.Interface
	node   string
	calm   *calm.Calm

	opening *semaphore.Weighted

	version string // up to which the pods are known; "": they are to be listed
	missed  bool   // whether a change could not be told any more: a list then may not be older than etcd
}

// run watches until ctx is done.
func (s *stream) run(ctx context.Context) {
	wait := pause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.follow(ctx)
		switch {
		case err == nil && time.Since(began) > pause:
			wait = pause
			continue // it has run its time
		case errors.Is(err, errUnreadable): // it would come again
			log.FromContext(ctx).Error(err, "could not follow the pods of a node, lists them anew", "node", s.node)
			s.version, s.missed, wait = "", true, min(2*wait, longestPause)
		case err == nil, listwatch.Unanswered(err):
			wait = pause
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			s.version, s.missed = "", true
		case ctx.Err() == nil:
			log.FromContext(ctx).Error(err, "could not watch the pods of a node, goes on trying", "node", s.node)
			wait = min(2*wait, longestPause)
		}
		sleep.For(ctx, wait+rand.N(wait))
	}
}

// follow lists where it has to, and watches until the watch ends. A watch could begin
// with the list (Kubernetes docs, "API concepts", streaming lists), but for that the
// API server goes through all pods of the cluster, while for a list it has an index
// of them by node.
func (s *stream) follow(ctx context.Context) error {
	if s.version == "" {
		if err := s.list(ctx); err != nil {
			return err
		}
		listed := time.Now()
		s.hold(ctx)
		if time.Since(listed) > aged {
			if err := s.listAnew(ctx); err != nil {
				return err
			}
		}
	}
	return s.watch(ctx)
}

// listAnew lists in turn: many that were held back are wanted at the same moment.
func (s *stream) listAnew(ctx context.Context) error {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.opening.Release(1)
	return s.list(ctx)
}

// hold waits until changes are worth hearing of.
func (s *stream) hold(ctx context.Context) {
	longest := time.NewTimer(held)
	defer longest.Stop()
	select {
	case <-ctx.Done():
	case <-s.calm.Here():
	case <-s.wanted:
	case <-longest.C:
	}
}

// list asks for all pods.
func (s *stream) list(ctx context.Context) error {
	var all corev1.PodList
	if err := s.request(&metav1.ListOptions{ResourceVersion: s.oldest()}).Do(ctx).Into(&all); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	pods := make(map[types.UID]packed, len(all.Items))
	for i := range all.Items {
		kept, err := pack(&all.Items[i])
		if err != nil {
			return fmt.Errorf("packing pod %s/%s: %w", all.Items[i].Namespace, all.Items[i].Name, err)
		}
		pods[all.Items[i].UID] = kept
	}
	s.version = all.ResourceVersion
	s.replace(pods)
	return nil
}

// watch follows the pods from where they are known.
func (s *stream) watch(ctx context.Context) error {
	seconds := int64((lasts + rand.N(lasts)).Seconds())
	options := &metav1.ListOptions{Watch: true, AllowWatchBookmarks: true, TimeoutSeconds: &seconds, ResourceVersion: s.version}
	body, err := s.open(ctx, options)
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	defer body.Close() // there is nothing to be done about it
	s.following(true)
	defer s.following(false)
	for {
		if err := s.hear(body); errors.Is(err, errEnded) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// open opens a watch, once not too many others are being opened.
func (s *stream) open(ctx context.Context, options *metav1.ListOptions) (io.ReadCloser, error) {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.opening.Release(1)
	return s.request(options).Stream(ctx)
}

// oldest is the version that pods are listed of: any that the API server has in
// memory, which is at once and not after it has caught up with etcd, as what is too
// new for it comes next; but none from before what is known already.
func (s *stream) oldest() string {
	if s.missed {
		return ""
	}
	return cmp.Or(s.version, "0")
}

// hear reads of a change, and stores it.
func (s *stream) hear(body io.Reader) error {
	event, pod, err := read(body)
	if err != nil {
		return err
	}
	switch event {
	case watch.Bookmark:
	case watch.Deleted:
		s.remove(pod)
	default:
		if err := s.put(pod); err != nil {
			return err
		}
	}
	s.version = pod.ResourceVersion
	return nil
}

// request asks for the pods of the node in protobuf: the only form in which read
// understands what is watched.
func (s *stream) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", s.node).String()
	return s.client.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).SetHeader("Accept", runtime.ContentTypeProtobuf)
}
