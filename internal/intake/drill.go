package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,resourceNames=lifeboat-drills,verbs=get

const (
	// DrillLease is the Lease whose annotations permit drills. Anyone who can send to the
	// queue can mark a message as a drill, so the mark proves nothing. Writing this Lease needs a
	// permission in the cluster.
	DrillLease = "lifeboat-drills"
	// DrillNamespace is its namespace.
	DrillNamespace = ProbeNamespace
	// drillAnnotation, followed by the id of a drill, holds a DrillPermit.
	drillAnnotation = "lifeboat.dev/drill-"
	// drillReadInterval is the shortest time between two reads of the Lease, so that forged
	// drills do not load the API server.
	drillReadInterval = 100 * time.Millisecond
)

// DrillPermit permits one drill.
type DrillPermit struct {
	// Instances are the instances of the drill.
	Instances []string `json:"instances"`
	// Expires is when messages of the drill are not accepted any more.
	Expires time.Time `json:"expires"`
	// EndInstance permits to end the instances as for a real notice.
	EndInstance bool `json:"endInstance,omitempty"`
}

// DrillAnnotation is the annotation of the Lease for a drill.
func DrillAnnotation(id string) string { return drillAnnotation + id }

// DrillValue is the value of that annotation.
func DrillValue(p DrillPermit) (string, error) {
	text, err := json.Marshal(p)
	return string(text), err
}

// DrillPermits returns the permits of a Lease by drill. It leaves out what it cannot read.
func DrillPermits(lease *coordinationv1.Lease) map[string]DrillPermit {
	permits := map[string]DrillPermit{}
	for key, value := range lease.Annotations {
		var p DrillPermit
		if id, ok := strings.CutPrefix(key, drillAnnotation); ok && json.Unmarshal([]byte(value), &p) == nil {
			permits[id] = p
		}
	}
	return permits
}

// drillReader reads the permits. Concurrent callers share a read that began after they came.
type drillReader struct {
	mu      sync.Mutex
	began   time.Time
	permits map[string]DrillPermit
}

func (d *drillReader) read(ctx context.Context, live client.Reader, clock func() time.Time) (map[string]DrillPermit, error) {
	came := clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.After(came) {
		return d.permits, nil
	}
	if !sleep.For(ctx, drillReadInterval-clock().Sub(d.began)) {
		return nil, ctx.Err()
	}
	began := clock()
	var lease coordinationv1.Lease
	err := live.Get(ctx, client.ObjectKey{Namespace: DrillNamespace, Name: DrillLease}, &lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Lease %s: %w", DrillLease, err)
	}
	d.began, d.permits = began, DrillPermits(&lease)
	return maps.Clone(d.permits), nil
}

// permitted reports whether the cluster permits the drill that a notice belongs to, and applies
// the permit to the notice.
func (r *Recorder) permitted(ctx context.Context, n *notice.Notice, now time.Time) (bool, error) {
	permits, err := r.drills.read(ctx, r.o.Live, r.o.Clock)
	if err != nil {
		return false, fmt.Errorf("finding out whether drill %s is permitted: %w", n.DrillID, err)
	}
	p, ok := permits[n.DrillID]
	if !ok || n.DrillID == "" || !now.Before(p.Expires) || !slices.Contains(p.Instances, n.InstanceID) {
		r.explain(ctx, "drill", "refused a drill without a permit in the cluster", describe(n, "drill", n.DrillID,
			"advice", "start drills with `lifeboat interrupt --via queue` of this release, as a user with the ClusterRole lifeboat-operator; "+
				"if no person did, find out who may send to the queue"))
		return false, nil
	}
	n.EndInstance = p.EndInstance
	return true, nil
}
