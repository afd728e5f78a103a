package podcache

import (
	"bytes"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// A lost connection continues from the last version; an event that cannot be decoded needs
// a list.
func TestLostConnectionIsNoDecodingError(t *testing.T) {
	read := func(text []byte) (watch.Event, error) {
		r, err := newEventReader(io.NopCloser(bytes.NewReader(text)), runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), corev1.SchemeGroupVersion))
		if err != nil {
			t.Fatal(err)
		}
		return r.next()
	}
	whole := newServer(t).frame(watch.Added, pod("a", "n"))
	event, err := read(whole)
	if got, ok := event.Object.(*corev1.Pod); err != nil || !ok || got.Name != "a" || event.Type != watch.Added {
		t.Fatalf("read %v, error %v", event, err)
	}
	for n := range len(whole) {
		if _, err := read(whole[:n]); !errors.Is(err, io.EOF) {
			t.Errorf("cut off after %d bytes: error %v", n, err)
		}
	}
	for name, text := range map[string][]byte{
		"no protobuf":       {0, 0, 0, 1, 255},
		"an empty event":    {0, 0, 0, 0},
		"an object of JSON": append([]byte{0, 0, 0, 13, 10, 5}, "ADDED\x12\x04\x0a\x02{}"...),
	} {
		if _, err := read(text); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
