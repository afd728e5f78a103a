package nodenotice

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
)

// A replica that does not lead records too, a little later, and writes no status.
func TestFollowerRecordsLater(t *testing.T) {
	w := newWorld(t)
	w.source = w.replica(make(chan struct{}))
	w.writes(nil, spotAt(start.Add(2*time.Minute), "1"))
	again, err := w.source.take(t.Context(), polltest.NodeName(instance))
	if err != nil || again != followerDelay || w.Notices(instance) != nil {
		t.Fatalf("again after %s, %v, on record %v", again, err, w.Notices(instance))
	}
	w.settle()
	if len(w.Notices(instance)) != 1 || w.accepted() != nil {
		t.Errorf("on record %v, condition %v", w.Notices(instance), w.accepted())
	}
	w.RemoveNode(instance)
	w.settle()
	if w.Written(instance) == nil {
		t.Error("a follower deleted the NodeNotice")
	}
}

func TestDeletedInterruptionIsNotRecordedAgain(t *testing.T) {
	w := newWorld(t)
	w.writes(nil, spotAt(start.Add(2*time.Minute), "1"))
	w.settle()
	if err := w.Kube.Delete(t.Context(), &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: instance}}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.Notices(instance); got != nil {
		t.Errorf("recorded again: %+v", got)
	}
}
