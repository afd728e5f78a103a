package podcache

import (
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
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// stream keeps a nodeWatch up to date. It does the work of client-go's Reflector with one
// goroutine per node instead of four, because a storm has a watch for every node.
type stream struct {
	*nodeWatch
	client  rest.Interface
	node    string
	decode  runtime.ClientNegotiator
	opening *semaphore.Weighted

	version string // the resource version to watch from; "": list first
	missed  bool   // whether the watch missed changes; the next list must not be stale
}

// run lists and watches until ctx ends.
func (s *stream) run(ctx context.Context) {
	backoff := minBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := s.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && time.Since(began) > minBackoff:
			backoff = minBackoff
			continue // the watch reached its timeout
		case mustList(err):
			s.version, s.missed = "", true
			if errors.Is(err, errUnreadable) { // the next attempt may fail in the same way
				log.FromContext(ctx).Error(err, "cannot read the watch of a node's pods, listing them again", "node", s.node)
				backoff = min(2*backoff, maxBackoff)
			}
		case err == nil, reflector.Unanswered(err):
			backoff = minBackoff
		default:
			log.FromContext(ctx).Error(err, "cannot watch the pods of a node, retrying", "node", s.node)
			backoff = min(2*backoff, maxBackoff)
		}
		sleep.For(ctx, backoff+rand.N(backoff))
	}
}

// mustList reports whether a watch cannot continue from its resource version. The version
// is too large after etcd was restored from a backup.
func mustList(err error) bool {
	return errors.Is(err, errUnreadable) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// follow lists if it must, and watches until the watch ends. It does not use a streaming
// list (sendInitialEvents). The API server serves a list by node from an index. For a watch that
// begins with the list, it reads all pods of the cluster.
func (s *stream) follow(ctx context.Context) error {
	if s.version == "" {
		if err := s.list(ctx); err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
	}
	return s.watch(ctx)
}

func (s *stream) list(ctx context.Context) error {
	options := &metav1.ListOptions{ResourceVersion: "0"} // from the API server's cache: the watch brings what is newer
	if s.missed {
		options.ResourceVersion = ""
	}
	var all corev1.PodList
	if err := s.request(options).Do(ctx).Into(&all); err != nil {
		return err
	}
	pods := make(map[types.UID]*corev1.Pod, len(all.Items))
	for i := range all.Items {
		pods[all.Items[i].UID] = slim(&all.Items[i])
	}
	s.version, s.missed = all.ResourceVersion, false
	s.replace(pods)
	return nil
}

// watch stores changes from s.version on.
func (s *stream) watch(ctx context.Context) error {
	events, err := s.openWatch(ctx)
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	defer events.Close()
	s.open.Store(true)
	defer s.open.Store(false)
	for {
		event, err := events.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		s.store(event)
	}
}

func (s *stream) store(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		s.put(pod)
	case watch.Deleted:
		s.remove(pod)
	}
	s.version = pod.ResourceVersion
}

// openWatch opens a watch.
func (s *stream) openWatch(ctx context.Context) (*eventReader, error) {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.opening.Release(1)
	seconds := int64((minTimeout + rand.N(minTimeout)).Seconds())
	body, err := s.request(&metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, TimeoutSeconds: &seconds, ResourceVersion: s.version,
	}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return newEventReader(body, s.decode)
}

// request asks for the pods of the node in protobuf, the format that newEventReader reads.
func (s *stream) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", s.node).String()
	return s.client.Get().Resource("pods").VersionedParams(options, scheme.ParameterCodec).SetHeader("Accept", runtime.ContentTypeProtobuf)
}

// eventReader reads the events of a watch. rest.Request.Watch uses the same decoders, but
// starts a goroutine for each watch.
type eventReader struct {
	watch.Decoder
	body *body
}

func newEventReader(from io.ReadCloser, decode runtime.ClientNegotiator) (*eventReader, error) {
	objects, events, framer, err := decode.StreamDecoder(runtime.ContentTypeProtobuf, nil)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	b := &body{ReadCloser: from}
	return &eventReader{restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(b), events), objects), b}, nil
}

// next returns the next event; io.EOF when the connection ended, for whatever reason; and
// for an event of type ERROR, the error.
func (r *eventReader) next() (watch.Event, error) {
	kind, object, err := r.Decode()
	switch {
	case r.body.err != nil:
		return watch.Event{}, io.EOF
	case err != nil:
		return watch.Event{}, fmt.Errorf("%w: %w", errUnreadable, err)
	case kind == watch.Error:
		return watch.Event{}, apierrors.FromObject(object)
	}
	return watch.Event{Type: kind, Object: object}, nil
}

// body remembers that reading failed, to tell a lost connection from bytes that cannot be
// decoded.
type body struct {
	io.ReadCloser
	err error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.err = err
	}
	return n, err
}

// errUnreadable marks an event of a watch that could not be decoded.
var errUnreadable = errors.New("decoding a watch event")

const (
	// minBackoff is the least time between two failed requests, and maxBackoff the most
	// while the API server answers with errors. Each wait adds up to as much again at
	// random, so that many watches do not retry in the same moment.
	minBackoff, maxBackoff = 500 * time.Millisecond, 15 * time.Second
	// minTimeout is the shortest timeout that a watch asks for; a random time up to the
	// same length is added, as in client-go's Reflector.
	minTimeout = 5 * time.Minute
)
