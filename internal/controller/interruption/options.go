package interruption

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/capacity"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/deregistration"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions/status,verbs=patch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptionpolicies,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,resourceNames=lifeboat-controller,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=lifeboat-system,resources=events,verbs=create;patch

// PodSource knows the pods of a node; podwatch.Watcher is one.
type PodSource interface {
	// Pods returns the pods bound to a node and whether all are known.
	Pods(ctx context.Context, node string) ([]*corev1.Pod, bool, error)
	// Await returns once the pods of a node are known, or ctx is done. Pods was called for
	// the node before.
	Await(ctx context.Context, node string)
	// Watched returns how many nodes are drained: their pods are watched.
	Watched() int
	// Current reports whether the watch of a node's pods is open.
	Current(node string) bool
	// Forget ends the watch of a node's pods.
	Forget(node string)
}

// NodeIndex finds the node of an instance; nil: it has none.
type NodeIndex interface {
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

// OwnerSource knows the owners of the pods of a node; ownerwatch.Watcher is one.
type OwnerSource interface {
	// Owners returns the owners of the pods and the volume claims that they mount, and
	// whether all are known.
	Owners(ctx context.Context, node string, pods []*corev1.Pod) (drain.Owners, bool, error)
	// Forget ends the watches for a node.
	Forget(node string)
}

// HookRunner runs the hooks of policies; runner.Runner is one.
type HookRunner interface {
	// Hooks takes the hooks of an Interruption one step further.
	Hooks(context.Context, runner.HookRun) (runner.HookOutcome, error)
}

// TargetSource knows whether instances are targets of load balancers; deregistration.Watcher is one.
type TargetSource interface {
	// State is what is known about an instance. It is read in the background, until a time.
	State(instanceID string, until time.Time) deregistration.State
}

// Options are what the controller needs. Live, Owners, HookRunner, Cloud, Claims, Groups,
// Targets and Detacher may be nil. Without them no pod is surged, no hook runs, no notification is
// sent, no instance is terminated, and Karpenter or Auto Scaling is left alone.
type Options struct {
	Client client.Client
	// Live reads past the cache.
	Live       client.Reader
	Nodes      NodeIndex
	Pods       PodSource
	Budgets    budgetcache.Lister
	Owners     OwnerSource
	HookRunner HookRunner
	Cloud      cloud.Cloud
	Claims     capacity.ClaimSource
	Targets    TargetSource
	// Groups knows Auto Scaling groups, and Detacher takes instances out of them.
	Groups   membership.Source
	Detacher capacity.Detacher
	// Hooks are patterns of the names of lifecycle hooks that package lifecyclehook
	// completes, such as lifeboat-*, in addition to those that NodeGroups name.
	Hooks []string
	// GroupChanges yields the names of groups that changed; nil: they are only polled.
	GroupChanges <-chan event.TypedGenericEvent[string]
	// Forward puts a message on Karpenter's own queue; nil: Lifeboat does not feed it.
	Forward func(ctx context.Context, message string) error
	// Place is where the cluster is on AWS.
	Place   replacement.Place
	Events  events.EventRecorder
	Metrics *status.Metrics
	// Clock returns the time; a pass reads it once.
	Clock func() time.Time
	// Margin is kept between the last call of a pod and a hard deadline.
	Margin time.Duration
	// SurgeDisabled evicts pods that would be surged.
	SurgeDisabled bool
	// Observe decides and plans, and leaves nodes, pods, instances and lifecycle hooks alone.
	Observe bool
	// FlushInterval is how long a transitional change of the status may stay unwritten
	// after the last write; zero: every change is written at once.
	FlushInterval time.Duration
	// TTL is how long a finished Interruption is kept.
	TTL time.Duration
}
