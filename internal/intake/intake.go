// Package intake receives notices and makes each one durable in the Interruption of its
// instance. Only then does a source acknowledge it.
//
// All sources write through a Recorder, so redelivery, reordering, several replicas and
// several sources that report the same interruption converge on one object. A Recorder
// needs no leader. Intake shares the Interruption with the controllers and nothing else: it
// calls none of their code. Each source is a directory below this one.
package intake

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outcome is the result of recording a notice. All but NotYetKnown are final: the source
// may acknowledge the notice.
type Outcome string

const (
	// Recorded says that the notice is the first of a new Interruption.
	Recorded Outcome = "recorded"
	// Joined says that the notice was added to the Interruption of its instance.
	Joined Outcome = "joined"
	// Repeated says that the Interruption of its instance already has the notice.
	Repeated Outcome = "repeated"
	// Foreign says that the notice is of another account, another region, or
	// an instance that is not of this cluster.
	Foreign Outcome = "foreign"
	// Stale says that the notice is too old to act on (see StaleAfter and
	// notice.AtRiskFor), or that the instance was started since.
	Stale Outcome = "stale"
	// Implausible says that the notice claims to be issued in the future (see maxFuture).
	Implausible Outcome = "implausible"
	// Unpermitted says that the notice claims to be a drill, and the cluster does not permit
	// it (see DrillLease).
	Unpermitted Outcome = "unpermitted"
	// NotYetKnown says that the instance has no Node, but one may still register. The
	// source decides how long it retries.
	NotYetKnown Outcome = "notYetKnown"
)

// Final reports whether the source may acknowledge the notice.
func (o Outcome) Final() bool { return o != NotYetKnown }

// Source receives notices from one place. Run blocks until ctx is done and the notices in
// flight are finished.
type Source interface {
	Name() string
	Run(ctx context.Context) error
}

// NodeIndex finds the node of an instance. It must read a synced cache: an instance without
// a node counts as not yet known, and after some retries as one of another cluster.
type NodeIndex interface {
	// NodeByInstance returns the node whose spec.providerID ends in the
	// instance id, or nil where there is none. If several state it, it returns
	// a *corroborate.ConflictError.
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

// Options configure a Recorder.
type Options struct {
	// Account and Region are those of this cluster. Notices that name another are refused.
	// Empty is not checked, and a notice that names none is not refused. Set both where
	// they are known: the account keeps out messages that others send to the queue.
	Account, Region string
	// Cluster is this cluster's name: probes of other clusters are ignored. Empty is not
	// checked.
	Cluster string
	// Alias reports whether another name is this cluster's too; nil: none is.
	Alias func(cluster string) bool
	// Rules are the roles of the rules whose probes are answered; none: all.
	Rules []string
	// Live reads without a cache, after a write has shown that the cache is stale. Nil: the
	// client itself.
	Live client.Reader
	// Metrics count what is recorded; nil: not exposed.
	Metrics *Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}
