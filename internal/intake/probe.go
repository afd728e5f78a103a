package intake

import (
	"context"
	"fmt"
	"regexp"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,verbs=create;patch

const (
	// ProbeLease is the Lease that records which probes have arrived.
	ProbeLease = "lifeboat-probe"
	// ProbeNamespace is its namespace.
	ProbeNamespace = "lifeboat-system"
	// probeAnnotation, followed by the role of a rule, holds the id of the last probe that
	// arrived through the rule, a space, and its time of arrival.
	probeAnnotation = "lifeboat.dev/probe-"
)

// Probe is a test message that was sent through a rule.
type Probe struct {
	// ID identifies the probe; Cluster and Rule are what it tests.
	ID, Cluster, Rule string
	// Sent is when it was sent, if known.
	Sent time.Time
}

// ProbeAnnotation is the annotation of the Lease for the rule of a role.
func ProbeAnnotation(rule string) string { return probeAnnotation + rule }

// ProbeValue is the value of that annotation.
func ProbeValue(id string, at time.Time) string { return id + " " + at.UTC().Format(time.RFC3339Nano) }

var (
	probeID   = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	probeRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
)

// Valid reports whether the probe can be answered.
func (p Probe) Valid() bool { return probeID.MatchString(p.ID) && probeRule.MatchString(p.Rule) }

// Answer records that a probe of this cluster has arrived.
func (r *Recorder) Answer(ctx context.Context, p Probe) error {
	if isOther(p.Cluster, r.o.Cluster) && (r.o.Alias == nil || !r.o.Alias(p.Cluster)) {
		return nil // each cluster's rules match the probes of all clusters
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
// The first one creates the Lease.
func (r *Recorder) answer(ctx context.Context, p Probe, now time.Time) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ProbeNamespace, Name: ProbeLease}}
	answered := lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&answered.ObjectMeta, ProbeAnnotation(p.Rule), ProbeValue(p.ID, now))
	renewed := metav1.NewMicroTime(now)
	answered.Spec.RenewTime = &renewed
	patch := client.MergeFrom(lease)
	err := r.client.Patch(ctx, answered.DeepCopy(), patch)
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = r.client.Create(ctx, answered.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = r.client.Patch(ctx, answered, patch)
	}
	return err
}
