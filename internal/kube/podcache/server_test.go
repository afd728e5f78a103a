package podcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// server simulates an API server behind an http.RoundTripper.
type server struct {
	testing.TB

	mu          sync.Mutex
	pods        []*corev1.Pod
	unreachable bool                      // connections are refused
	refuses     *apierrors.StatusError    // the answer to every request
	asked       []url.Values              // the requests so far
	streams     map[string]*io.PipeWriter // by selector
}

func newServer(t testing.TB, pods ...*corev1.Pod) *server {
	return &server{TB: t, pods: pods, streams: map[string]*io.PipeWriter{}}
}

func (s *server) client() rest.Interface {
	s.Helper()
	c, err := rest.RESTClientForConfigAndClient(&rest.Config{Host: "http://server", APIPath: "/api", QPS: -1, ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(), ContentType: runtime.ContentTypeProtobuf,
	}}, &http.Client{Transport: s})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := req.URL.Query()
	s.asked = append(s.asked, q)
	switch {
	case s.unreachable:
		return nil, errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")
	case s.refuses != nil:
		return s.answer(int(s.refuses.ErrStatus.Code), &s.refuses.ErrStatus), nil
	case q.Get("watch") == "":
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
		for _, p := range s.on(q) {
			list.Items = append(list.Items, *p)
		}
		return s.answer(http.StatusOK, list), nil
	}
	return s.stream(req.Context(), q), nil
}

// stream opens a watch.
func (s *server) stream(ctx context.Context, q url.Values) *http.Response {
	from, to := io.Pipe()
	s.streams[q.Get("fieldSelector")] = to
	context.AfterFunc(ctx, func() { _ = to.CloseWithError(ctx.Err()) })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf + ";stream=watch"}}, Body: from}
}

// on returns the pods of the requested node.
func (s *server) on(q url.Values) []*corev1.Pod {
	var found []*corev1.Pod
	for _, p := range s.pods {
		if q.Get("fieldSelector") == "spec.nodeName="+p.Spec.NodeName {
			found = append(found, p)
		}
	}
	return found
}

func (s *server) answer(code int, o runtime.Object) *http.Response {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}, Body: io.NopCloser(bytes.NewReader(s.encode(o))),
	}
}

func (s *server) encode(o runtime.Object) []byte {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	text, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), o)
	if err != nil {
		s.Error(err)
	}
	return text
}

func (s *server) frame(what watch.EventType, o runtime.Object) []byte {
	event := metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Raw: s.encode(o)}}
	text, err := event.Marshal()
	if err != nil {
		s.Error(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// send sends an event to the watch of a node.
func (s *server) send(node string, what watch.EventType, o runtime.Object) {
	s.Helper()
	if _, err := s.wire(node).Write(s.frame(what, o)); err != nil {
		s.Error(err)
	}
}

// wire is the connection of a node's watch.
func (s *server) wire(node string) *io.PipeWriter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams["spec.nodeName="+node]
}

// set changes the server's settings.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// requests returns the requests so far.
func (s *server) requests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}
