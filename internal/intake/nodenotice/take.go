package nodenotice

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// errStaleNode says that the cache does not have the node yet.
var errStaleNode = errors.New("the cached Node is older than its NodeNotice")

// take records one NodeNotice, and returns when to take it again; zero: not
// before it changes.
func (s *Source) take(ctx context.Context, name string) (again time.Duration, err error) { //nolint:gocyclo // one case for each state of the object
	var own v1beta1.NodeNotice
	err = s.o.Client.Get(ctx, client.ObjectKey{Name: name}, &own)
	if apierrors.IsNotFound(err) || err == nil && !own.DeletionTimestamp.IsZero() {
		s.forget(name)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading NodeNotice %s: %w", name, err)
	}
	st := s.stateOf(&own)
	if wait := s.early(st); wait > 0 {
		return wait, nil
	}
	node, err := s.nodeOf(ctx, &own)
	if err != nil {
		return 0, err
	}
	if node == nil {
		return s.removeOrphan(ctx, &own)
	}
	v, err := s.verify(ctx, &own, node)
	if err != nil {
		return 0, err
	}
	again = rejectedResync
	if v.accepted {
		refused, err := s.record(ctx, st, &own)
		if err != nil {
			return 0, err
		}
		v.refused(refused)
		again = resync
		if st.deduper.Pending() > 0 { // the Recorder's cache does not have the node yet
			again = time.Second
		}
	}
	st.done, st.doneAt = own.Generation, s.o.Clock()
	if wait, err := s.report(ctx, st, &own, v); wait > 0 || err != nil {
		return min(wait, again), err
	}
	return again, nil
}

// stateOf returns the state of a NodeNotice, and notes its generation.
func (s *Source) stateOf(own *v1beta1.NodeNotice) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.states[own.Name]
	if st == nil || st.uid != own.UID {
		reader := &switchReader{s.o.Client}
		st = &state{uid: own.UID, reader: reader, deduper: poll.NewDeduper(s.o.Recorder, reader, poll.Options{
			Source: Name, Nodes: s.o.Nodes, Metrics: s.o.Metrics, Clock: s.o.Clock,
		})}
		s.states[own.Name] = st
	}
	if st.generation != own.Generation {
		st.generation, st.seen = own.Generation, s.o.Clock()
	}
	return st
}

func (s *Source) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, name)
}

// early returns how long a NodeNotice must wait: on a replica that does not
// lead, and if it was recorded a moment ago.
func (s *Source) early(st *state) time.Duration {
	now := s.o.Clock()
	due := st.doneAt.Add(minInterval)
	if st.done == st.generation {
		due = time.Time{} // this pass repairs and reports
	}
	if follower := st.seen.Add(followerDelay); !s.leads() && follower.After(due) {
		due = follower
	}
	return due.Sub(now)
}

// nodeOf returns the node of a NodeNotice, or nil if it no longer exists. Before
// it says so, it asks the API server: the cache may be older than the NodeNotice.
func (s *Source) nodeOf(ctx context.Context, own *v1beta1.NodeNotice) (*corev1.Node, error) {
	node := &corev1.Node{}
	isOwn := func(reader client.Reader) (bool, error) {
		err := reader.Get(ctx, client.ObjectKey{Name: own.Name}, node)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading Node %s: %w", own.Name, err)
		}
		return string(node.UID) == own.Spec.NodeUID, nil
	}
	if ok, err := isOwn(s.o.Client); ok || err != nil {
		return node, err
	}
	exists, err := isOwn(s.o.Live)
	switch {
	case err != nil:
		return nil, err
	case exists:
		return nil, errStaleNode
	}
	return nil, nil //nolint:nilnil // a missing node is not an error
}

// removeOrphan deletes the NodeNotice of a node that no longer exists. Nothing
// can verify what it says any more.
func (s *Source) removeOrphan(ctx context.Context, own *v1beta1.NodeNotice) (time.Duration, error) {
	if !s.leads() {
		return rejectedResync, nil
	}
	err := s.o.Client.Delete(ctx, own, client.Preconditions{UID: &own.UID, ResourceVersion: &own.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil // it is gone, or a newer one will come from the watch
	}
	if err != nil {
		return 0, fmt.Errorf("deleting NodeNotice %s: %w", own.Name, err)
	}
	s.explain(ctx, "orphan", "deleted the NodeNotice of a node that no longer exists", "node", own.Name, "instance", own.Spec.InstanceID, "notices", len(own.Spec.Notices))
	return 0, nil
}

// record records the notices, and returns the error of those that this release
// does not accept.
func (s *Source) record(ctx context.Context, st *state, own *v1beta1.NodeNotice) (refused, err error) {
	var notices []notice.Notice
	st.reader.Reader = s.o.Client
	for i := len(own.Spec.Notices) - 1; i >= 0; i-- { // the oldest first
		n, err := notice.FromMetadata(&own.Spec.Notices[i], own.Spec.InstanceID, s.o.Clock())
		if err != nil {
			s.o.Metrics.Unreadable(Name, "notice")
			refused = errors.Join(refused, err)
			continue
		}
		if n.Withdrawn {
			st.reader.Reader = s.o.Live // the cached record may lack the notice that it withdraws
		}
		notices = append(notices, n)
	}
	st.deduper.Retain(notices)
	for i := range notices {
		st.deduper.Observe(notices[i])
	}
	if st.done != st.generation {
		log.FromContext(ctx).V(1).Info("recording NodeNotice", "node", own.Name, "instance", own.Spec.InstanceID, "notices", len(notices))
	}
	if err := st.deduper.Flush(ctx); err != nil {
		return nil, err
	}
	return refused, nil
}
