// Package intake hears: it takes notices in and makes each one durable, in the
// Interruption of its instance, before the place it came from may forget it.
//
// Every source hands its notices to one Recorder, so that redelivery,
// reordering, several replicas, and several sources that report the same
// reclaim all converge on one record. Sources need no leader. Each source is a
// directory below this one.
package intake

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Outcome is what became of a notice. All but NotYetKnown are final: the place
// that the notice came from may forget it.
type Outcome string

const (
	// Recorded says that the notice is the first of a new Interruption.
	Recorded Outcome = "recorded"
	// Joined says that the notice was added to the Interruption of its instance.
	Joined Outcome = "joined"
	// Repeated says that the Interruption of its instance holds the notice
	// already.
	Repeated Outcome = "repeated"
	// Foreign says that the notice is of another account, another region, or
	// an instance that is not of this cluster.
	Foreign Outcome = "foreign"
	// Stale says that the notice's hard deadline was over long ago (see
	// StaleAfter), or that the instance was started since.
	Stale Outcome = "stale"
	// NotYetKnown says that no node of this cluster is the instance, but one may
	// still register. The source decides how long it goes on asking.
	NotYetKnown Outcome = "notYetKnown"
)

// Final reports whether the source may acknowledge the notice.
func (o Outcome) Final() bool { return o != NotYetKnown }

// Source takes notices in from one place. Run blocks until ctx is done and
// what the source has in hand is finished; it needs no leader.
type Source interface {
	Name() string
	Run(ctx context.Context) error
}

// NodeIndex finds the node that an instance is. It must answer from a synced
// cache: an instance that it does not find is taken for not known yet, and
// after a while for one of another cluster.
type NodeIndex interface {
	// NodeByInstance returns the node whose spec.providerID ends in the
	// instance id, or nil where there is none.
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}
