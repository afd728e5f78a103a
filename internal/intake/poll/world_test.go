package poll_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	source   = "test"
	instance = "i-0a1b2c3d4e5f60718"
)

var noon = time.Date(2026, 5, 11, 12, 0, 0, 0, time.UTC)

// world is a cluster with one node, and a Deduper.
type world struct {
	*polltest.World
	t      *testing.T
	ledger *poll.Deduper
}

func newWorld(t *testing.T) *world {
	w := &world{World: polltest.New(t), t: t}
	w.Set(noon)
	w.AddNode(instance)
	w.restart()
	return w
}

// restart drops all state outside the cluster.
func (w *world) restart() {
	w.ledger = poll.NewDeduper(w.Recorder(), w.Kube, poll.Options{Source: source, Clock: w.Clock})
}

// seen observes notices and flushes them.
func (w *world) seen(notices ...notice.Notice) {
	w.t.Helper()
	for _, n := range notices {
		w.ledger.Observe(n)
	}
	if err := w.ledger.Flush(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// about returns a notice with a subject.
func about(subject, id string, changes ...func(*notice.Notice)) notice.Notice {
	n := notice.Notice{
		Notice:     v1beta1.Notice{ID: id, Kind: notice.KindScheduledChange, Source: source, Subject: subject},
		InstanceID: instance,
	}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func withdrawn(n *notice.Notice) { n.Withdrawn = true }

func issued(at time.Time) func(*notice.Notice) {
	return func(n *notice.Notice) { n.Time = metav1.NewTime(at) }
}

func of(id string) func(*notice.Notice) { return func(n *notice.Notice) { n.InstanceID = id } }
