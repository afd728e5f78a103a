package autoscaling

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Group is an Auto Scaling group. If it has a Template or Mixed, it launches and terminates
// instances automatically. Without them it only shows its sizes, and its members are those that a
// test attaches.
type Group struct {
	Name              string
	Min, Max, Desired int
	Tags              map[string]string
	// NotPropagated are the keys of tags that instances do not get.
	NotPropagated []string
	// LaunchTemplate is the name of a template to show, for a group without Template and Mixed.
	LaunchTemplate string
	// Template is what the group launches; Mixed offers several instance types.
	Template ec2.TemplateRef
	Mixed    *Mixed
	// Subnets and Zones restrict where the group launches; both empty: in all zones.
	Subnets, Zones    []string
	CapacityRebalance bool
	// WarmPool is nil when the group has none.
	WarmPool *WarmPool
	// Hooks exist before the group launches its first instance. The field Group of a hook is
	// ignored.
	Hooks []Hook
	// DeregistrationDelay is how long instances stay in Terminating, while load balancers
	// deregister them, before hooks are notified; zero: Timing.Deregister.
	DeregistrationDelay time.Duration
	// ProtectNew protects new instances from scale-in.
	ProtectNew bool
	// GracePeriod is how long after InService an unhealthy report has no effect, if the report
	// respects it.
	GracePeriod     time.Duration
	HealthCheckType string // default EC2
	Cooldown        time.Duration
	// Retain keeps instances whose terminate hook was abandoned, in Terminating:Retained.
	Retain bool
	// Policies choose what to terminate; default Default.
	Policies []string
	// Operator is the service principal that alone may change the group, such as eks.amazonaws.com;
	// empty: all callers may.
	Operator string
	// DeletionProtection is none (the default), prevent-force-deletion or
	// prevent-all-deletion.
	DeletionProtection string
}

// Mixed is a mixed instances policy (Amazon EC2 Auto Scaling API Reference,
// MixedInstancesPolicy).
type Mixed struct {
	Template     ec2.TemplateRef
	Overrides    []Override
	Distribution Distribution
}

// Override is one instance type of a mixed group, the first one preferred.
type Override struct {
	Type, ImageID string
	// Template replaces the template of the policy; zero: the policy's.
	Template ec2.TemplateRef
}

// Distribution says which part of a mixed group is bought on demand and on the spot market.
type Distribution struct {
	OnDemandStrategy string // default prioritized
	OnDemandBase     int
	// OnDemandPercent of what is above the base is bought on demand; nil: all.
	OnDemandPercent *int
	SpotStrategy    string // default lowest-price
	SpotPools       int
	SpotMaxPrice    string
}

// WarmPool is the warm pool of a group.
type WarmPool struct {
	MinSize int
	// MaxPrepared is MaxGroupPreparedCapacity; nil: the group's maximum.
	MaxPrepared *int
	// State is what warm instances do: WarmedStopped, the default, WarmedRunning or
	// WarmedHibernated.
	State LifecycleState
	// ReuseOnScaleIn returns instances to the pool on scale-in.
	ReuseOnScaleIn bool
}

type group struct {
	Group
	arn       string
	created   time.Time
	hooks     []Hook // sorted by name
	suspended map[Process]time.Time

	poolEnds bool // the warm pool is deleted, and stays until its last instance is gone
	deleting bool
	waking   bool      // an evaluation is scheduled
	retryAt  time.Time // no launch before this time
	scaled   time.Time // when the sizes were last changed by a scaling activity
	refresh  []*refresh
}

// pool is the lasting state of the group's warm instances.
func (g *group) pool() LifecycleState {
	if g.WarmPool == nil || g.WarmPool.State == "" {
		return WarmedStopped
	}
	return g.WarmPool.State
}

// poolSize is the wanted number of warm instances (Amazon EC2 Auto Scaling API Reference,
// PutWarmPool).
func (g *group) poolSize() int {
	if g.WarmPool == nil || g.poolEnds {
		return 0
	}
	prepared := g.Max
	if g.WarmPool.MaxPrepared != nil {
		prepared = *g.WarmPool.MaxPrepared
	}
	return max(g.WarmPool.MinSize, prepared-g.Desired, 0)
}

// hasTemplate reports whether the group launches and terminates instances automatically.
func (g *group) hasTemplate() bool {
	return g.Mixed != nil || g.Template != (ec2.TemplateRef{})
}

// template is what the group launches, or launches by default.
func (g *group) template() ec2.TemplateRef {
	if g.Mixed != nil {
		return g.Mixed.Template
	}
	return g.Template
}

// deregistration is how long instances stay in Terminating.
func (g *group) deregistration(t Timing) time.Duration {
	if !g.hasTemplate() {
		return g.DeregistrationDelay
	}
	return cmp.Or(g.DeregistrationDelay, t.Deregister)
}

// instanceTags are the tags of new instances.
func (g *group) instanceTags() map[string]string {
	out := maps.Clone(g.Tags)
	maps.DeleteFunc(out, func(key, _ string) bool { return slices.Contains(g.NotPropagated, key) })
	return out
}

// clone is a copy that shares no mutable data with the original.
func (g *group) clone() group {
	out := *g
	out.Tags = maps.Clone(g.Tags)
	out.NotPropagated = slices.Clone(g.NotPropagated)
	out.suspended = maps.Clone(g.suspended)
	out.hooks = slices.Clone(g.hooks)
	if g.WarmPool != nil {
		pool := *g.WarmPool
		out.WarmPool = &pool
	}
	return out
}

// Process is a process of a group (Amazon EC2 Auto Scaling User Guide, Suspend and resume
// processes).
type Process string

// The processes of a group.
const (
	Launch            Process = "Launch" // suspending it also stops the filling of the warm pool
	Terminate         Process = "Terminate"
	AddToLoadBalancer Process = "AddToLoadBalancer"
	AlarmNotification Process = "AlarmNotification"
	AZRebalance       Process = "AZRebalance"
	HealthCheck       Process = "HealthCheck"
	InstanceRefresh   Process = "InstanceRefresh"
	ReplaceUnhealthy  Process = "ReplaceUnhealthy"
	ScheduledActions  Process = "ScheduledActions"
)

var processes = []Process{
	AddToLoadBalancer, AlarmNotification, AZRebalance, HealthCheck, InstanceRefresh, Launch, ReplaceUnhealthy, ScheduledActions, Terminate,
}

func (g *group) does(p Process) bool {
	_, suspended := g.suspended[p]
	return !suspended
}
