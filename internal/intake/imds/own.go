package imds

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// observe takes a notice that metadata contains, and reports whether the
// NodeNotice changes. Metadata of another instance changes nothing.
func (s *Source) observe(n notice.Notice) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.self.InstanceID != "" && n.InstanceID != s.self.InstanceID {
		return false
	}
	var changed bool
	s.notices, changed = put(s.notices, n)
	return changed
}

// put adds a notice as the latest, in place of the earlier one of its subject. A
// withdrawal of what was never noticed changes nothing.
func put(notices []notice.Notice, n notice.Notice) ([]notice.Notice, bool) {
	i := slices.IndexFunc(notices, func(on notice.Notice) bool {
		return on.InstanceID == n.InstanceID && on.Kind == n.Kind && on.Subject == n.Subject
	})
	switch {
	case i < 0 && n.Withdrawn, i >= 0 && notices[i].ID == n.ID:
		return notices, false
	case i >= 0:
		notices = slices.Delete(slices.Clone(notices), i, i+1)
	}
	notices = slices.Insert(slices.Clone(notices), 0, n)
	if len(notices) > notice.MaxFromAgent {
		notices = slices.Delete(notices, leastNeeded(notices), leastNeeded(notices)+1)
	}
	return notices, true
}

// leastNeeded returns the index of the oldest withdrawn notice, else of the
// oldest one. The notices are the latest first.
func leastNeeded(notices []notice.Notice) int {
	for i, n := range slices.Backward(notices) {
		if n.Withdrawn {
			return i
		}
	}
	return len(notices) - 1
}

// load reads the NodeNotice, and continues with what it says about this node.
func (s *Source) load(ctx context.Context, self Identity) error { //nolint:gocyclo // one case for each state of the object
	own := &v1beta1.NodeNotice{}
	err := s.o.Kube.Get(ctx, client.ObjectKey{Name: self.Node}, own)
	switch {
	case apierrors.IsNotFound(err):
		own = nil
	case err != nil:
		return fmt.Errorf("reading NodeNotice %s: %w", self.Node, err)
	}
	s.own = own
	var notices []notice.Notice
	if own != nil && own.Spec.NodeUID == self.UID && own.Spec.InstanceID == self.InstanceID {
		for i := range own.Spec.Notices {
			if n, err := notice.FromMetadata(&own.Spec.Notices[i], self.InstanceID, s.o.Clock()); err == nil {
				notices = append(notices, n)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range notices {
		if _, ok := s.known[n.Subject]; !ok && n.Kind == notice.KindScheduledChange && !n.Withdrawn {
			s.known[n.Subject] = event{notice: n}
		}
	}
	for _, n := range slices.Backward(s.notices) { // read from metadata meanwhile
		if n.InstanceID == self.InstanceID {
			notices, _ = put(notices, n)
		}
	}
	s.self, s.notices = self, notices
	return nil
}

// isWritten reports whether the NodeNotice says what metadata says.
func (s *Source) isWritten() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil || s.own.Spec.NodeUID != s.self.UID || s.own.Spec.InstanceID != s.self.InstanceID {
		return len(s.notices) == 0
	}
	return slices.EqualFunc(s.own.Spec.Notices, s.notices, func(on v1beta1.MetadataNotice, n notice.Notice) bool { return on.ID == n.ID })
}

// write writes the NodeNotice if it changes. The agent is the only writer of its
// spec, so the patch needs no lock.
func (s *Source) write(ctx context.Context, self Identity) error {
	if s.isWritten() {
		return nil
	}
	wanted := &v1beta1.NodeNotice{ObjectMeta: metav1.ObjectMeta{Name: self.Node}}
	if s.own != nil {
		wanted = s.own.DeepCopy()
	}
	wanted.Spec = v1beta1.NodeNoticeSpec{InstanceID: self.InstanceID, NodeUID: self.UID}
	s.mu.Lock()
	for i := range s.notices {
		wanted.Spec.Notices = append(wanted.Spec.Notices, notice.ToMetadata(&s.notices[i]))
	}
	s.mu.Unlock()
	var err error
	if s.own == nil {
		err = s.o.Kube.Create(ctx, wanted)
	} else {
		err = s.o.Kube.Patch(ctx, wanted, client.MergeFrom(s.own))
	}
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		if err := s.load(ctx, self); err != nil { // it was deleted or created meanwhile
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("writing NodeNotice %s: %w", self.Node, err)
	}
	s.own = wanted
	s.o.Metrics.Received(Name, "written")
	log.FromContext(ctx).Info("wrote the node's notices", "instance", self.InstanceID, "notices", len(wanted.Spec.Notices), "latest", wanted.Spec.Notices[0].ID)
	return nil
}
