package intake

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,resourceNames=lifeboat-probe,verbs=get;patch

const (
	// ProbeLease is the Lease in which probers announce probes, and lifeboatd records which of
	// them have arrived.
	ProbeLease = "lifeboat-probe"
	// ProbeNamespace is its namespace.
	ProbeNamespace = "lifeboat-system"
	// probeAnnotation is followed by the role of a rule. The value has the id of the last probe
	// that arrived through the rule, a space, and its time of arrival.
	probeAnnotation = "lifeboat.dev/probe-"
	// announcement, followed by the id of a probe, announces it. The value is when the prober
	// stops waiting.
	announcement = "lifeboat.dev/announced-"
	// leaseInterval is the least time between two reads of the Lease. Who can put events on the
	// bus can send any number of probes that were not announced.
	leaseInterval = 250 * time.Millisecond
)

// Probe is a test message that was sent through a rule. The probes of one run have the same id.
type Probe struct {
	// ID identifies the run; Cluster and Rule are what it tests.
	ID, Cluster, Rule string
	// Sent is when it was sent, if known.
	Sent time.Time
}

// ProbeAnnotation is the annotation of the Lease for the rule of a role.
func ProbeAnnotation(rule string) string { return probeAnnotation + rule }

// ProbeValue is the value of that annotation.
func ProbeValue(id string, at time.Time) string { return id + " " + at.UTC().Format(time.RFC3339Nano) }

// Announce adds the announcement of a run of probes to the Lease, and removes those that have
// expired.
func Announce(lease *coordinationv1.Lease, id string, now, until time.Time) {
	for key, value := range lease.Annotations {
		if at, err := time.Parse(time.RFC3339, value); strings.HasPrefix(key, announcement) && (err != nil || at.Before(now)) {
			delete(lease.Annotations, key)
		}
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, announcement+id, until.UTC().Format(time.RFC3339))
}

// Retract removes the announcement.
func Retract(lease *coordinationv1.Lease, id string) { delete(lease.Annotations, announcement+id) }

var (
	// An announcement is the name of an annotation, which has at most 63 characters.
	probeID   = regexp.MustCompile(`^[A-Za-z0-9-]{1,48}$`)
	probeRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
)

// Valid reports whether the probe can be answered.
func (p Probe) Valid() bool { return probeID.MatchString(p.ID) && probeRule.MatchString(p.Rule) }

// Answer records that a probe of this cluster has arrived. Everybody who can put events on the bus
// can send probes. So it answers those that were announced in the cluster, once each.
func (r *Recorder) Answer(ctx context.Context, p Probe) error {
	if isOther(p.Cluster, r.o.Cluster) && (r.o.Alias == nil || !r.o.Alias(p.Cluster)) {
		return nil // each cluster's rules match the probes of all clusters
	}
	if !p.Valid() || len(r.o.Rules) > 0 && !slices.Contains(r.o.Rules, p.Rule) {
		return nil
	}
	isNew, err := r.probes.isNew(ctx, r.o.Live, p)
	if err != nil {
		return fmt.Errorf("reading the Lease %s/%s: %w", ProbeNamespace, ProbeLease, err)
	}
	if !isNew {
		return nil
	}
	now := r.o.Clock()
	if err := r.answer(ctx, p, now); err != nil {
		return fmt.Errorf("answering the probe of rule %s: %w", p.Rule, err)
	}
	r.o.Metrics.Probed(p, now)
	log.FromContext(ctx).V(1).Info("answered probe", "probe", p.ID, "rule", p.Rule)
	return nil
}

// answer patches only the annotation of this rule: probes of several rules arrive concurrently.
func (r *Recorder) answer(ctx context.Context, p Probe, now time.Time) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ProbeNamespace, Name: ProbeLease}}
	answered := lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&answered.ObjectMeta, ProbeAnnotation(p.Rule), ProbeValue(p.ID, now))
	renewed := metav1.NewMicroTime(now)
	answered.Spec.RenewTime = &renewed
	return r.client.Patch(ctx, answered, client.MergeFrom(lease))
}

// probes limits what probes cost: one read of the Lease serves all that have arrived before it began.
type probes struct {
	begun atomic.Int64  // reads that have begun
	token chan struct{} // holds the right to use what follows; unlike a mutex, a wait for it can end early

	last  time.Time
	lease *coordinationv1.Lease // never changed, only replaced
	err   error
	// answered holds the probes of the current announcements that were answered here.
	answered map[Probe]bool
}

func newProbes() *probes {
	return &probes{token: make(chan struct{}, 1), answered: map[Probe]bool{}}
}

// isNew reports whether the probe is announced in the Lease, as it was read after the call, and this
// is its first call. It may take leaseInterval.
func (s *probes) isNew(ctx context.Context, live client.Reader, p Probe) (bool, error) {
	arrived := s.begun.Load()
	select {
	case s.token <- struct{}{}:
		defer func() { <-s.token }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if s.begun.Load() == arrived {
		if wait := leaseInterval - time.Since(s.last); wait > 0 && !sleep.For(ctx, wait) {
			return false, ctx.Err()
		}
		s.read(ctx, live)
	}
	key := Probe{ID: p.ID, Rule: p.Rule}
	if s.err != nil || !isAnnounced(s.lease, p) || s.answered[key] {
		return false, s.err
	}
	s.answered[key] = true
	return true, nil
}

// read reads the Lease. A missing one is empty.
func (s *probes) read(ctx context.Context, live client.Reader) {
	s.begun.Add(1)
	s.lease = &coordinationv1.Lease{}
	s.err = client.IgnoreNotFound(live.Get(ctx, client.ObjectKey{Namespace: ProbeNamespace, Name: ProbeLease}, s.lease))
	s.last = time.Now()
	maps.DeleteFunc(s.answered, func(p Probe, _ bool) bool { return !isAnnounced(s.lease, p) })
}

func isAnnounced(lease *coordinationv1.Lease, p Probe) bool {
	_, announced := lease.Annotations[announcement+p.ID]
	return announced
}
