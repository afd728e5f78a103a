package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeGroup is an Auto Scaling group with its warm pool and lifecycle hooks,
// declared or adopted. A group is adopted by naming it: nothing of it is changed
// then unless spec.management says so, and its launch hooks are answered.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ng
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.status.group`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="In Service",type=integer,JSONPath=`.status.instances.inService`
// +kubebuilder:printcolumn:name="Joining",type=integer,JSONPath=`.status.instances.joining`
// +kubebuilder:printcolumn:name="Warm",type=integer,JSONPath=`.status.instances.warm`
// +kubebuilder:printcolumn:name="Leaving",type=integer,JSONPath=`.status.instances.leaving`
// +kubebuilder:printcolumn:name="Pending Actions",type=integer,JSONPath=`.status.pendingActions`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeGroupSpec   `json:"spec,omitempty"`
	Status NodeGroupStatus `json:"status,omitempty"`
}

// NodeGroupList is a list of NodeGroup.
//
// +kubebuilder:object:root=true
type NodeGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeGroup `json:"items"`
}

// Management says how much of an Auto Scaling group is changed.
type Management string

const (
	// ManageNothing reports what is wrong and changes nothing. Hooks are answered
	// all the same. The default.
	ManageNothing Management = "Observe"
	// ManageHooks puts the hooks that are missing or wrong.
	ManageHooks Management = "Hooks"
	// ManageAll creates the group if it is not there, and keeps it as declared.
	ManageAll Management = "All"
)

// DeletionPolicy says what becomes of the Auto Scaling group once its NodeGroup
// is deleted.
type DeletionPolicy string

const (
	// KeepGroup leaves the group and its nodes as they are. The default.
	KeepGroup DeletionPolicy = "Keep"
	// DeleteGroup deletes the group once no instance of it is in service; its
	// warm pool goes with it. Nodes that run are never taken down by it.
	DeleteGroup DeletionPolicy = "DeleteWhenEmpty"
)

// NodeGroupSpec is what a team declares.
//
// +kubebuilder:validation:XValidation:rule="!has(self.management) || self.management != 'All' || (has(self.launchTemplate) && has(self.maxSize) && has(self.subnets))",message="management All needs launchTemplate, maxSize and subnets, from which the group is created"
// +kubebuilder:validation:XValidation:rule="(has(self.autoScalingGroup) ? self.autoScalingGroup : \"\") == (has(oldSelf.autoScalingGroup) ? oldSelf.autoScalingGroup : \"\")",message="autoScalingGroup cannot change: make another NodeGroup"
// +kubebuilder:validation:XValidation:rule="!has(self.deletionPolicy) || self.deletionPolicy != 'DeleteWhenEmpty' || (has(self.management) && self.management == 'All')",message="deletionPolicy DeleteWhenEmpty deletes the group: write management: All as well, or Keep"
// +kubebuilder:validation:XValidation:rule="!has(self.mixedInstances) || has(self.launchTemplate)",message="mixedInstances needs launchTemplate, from which its instances are launched"
// +kubebuilder:validation:XValidation:rule="!has(self.retainUndrained) || !self.retainUndrained || !has(self.hooks) || !has(self.hooks.terminate) || !has(self.hooks.terminate.onTimeout) || self.hooks.terminate.onTimeout != 'CONTINUE'",message="retainUndrained keeps instances whose terminate hook was abandoned, and onTimeout CONTINUE never abandons: write ABANDON, or leave onTimeout out"
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || !has(self.maxSize) || self.minSize <= self.maxSize",message="minSize is larger than maxSize"
type NodeGroupSpec struct {
	// AutoScalingGroup is the name of the group; the object's own name where it
	// is empty.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AutoScalingGroup string `json:"autoScalingGroup,omitempty"`
	// Management says how much Lifeboat changes at AWS. Observe: nothing; Hooks:
	// it puts its two hooks, and nothing else; All: it creates the group and keeps
	// it as declared here. The desired capacity is never changed.
	// +kubebuilder:default=Observe
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Observe','Hooks','All']",messageExpression="'unknown management ' + self + ': write Observe, Hooks or All'"
	// +optional
	Management Management `json:"management,omitempty"`
	// LaunchTemplate is what instances are launched from.
	// +optional
	LaunchTemplate *LaunchTemplate `json:"launchTemplate,omitempty"`
	// MixedInstances has the group launch several instance types, on demand and
	// on spot.
	// +optional
	MixedInstances *MixedInstances `json:"mixedInstances,omitempty"`
	// MinSize and MaxSize bound the number of instances in service.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSize *int32 `json:"minSize,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxSize *int32 `json:"maxSize,omitempty"`
	// Subnets are the ids of the subnets to launch into; with management All one
	// at least.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^subnet-[0-9a-f]+$`
	// +listType=set
	// +optional
	Subnets []string `json:"subnets,omitempty"`
	// CapacityRebalance launches a replacement on a rebalance recommendation.
	// +optional
	CapacityRebalance *bool `json:"capacityRebalance,omitempty"`
	// WarmPool is the group's pool of instances that were set up before they
	// are needed. With management All, a pool that is not declared is deleted.
	// +optional
	WarmPool *WarmPool `json:"warmPool,omitempty"`
	// Hooks are the hooks that Lifeboat answers. What is not given of them has the
	// defaults that stand with their fields.
	// +optional
	Hooks LifecycleHooks `json:"hooks,omitempty"`
	// RetainUndrained keeps an instance whose terminate hook was abandoned, in
	// the state Terminating:Retained, until somebody terminates it (EC2 Auto
	// Scaling API Reference, InstanceLifecyclePolicy).
	// +optional
	RetainUndrained *bool `json:"retainUndrained,omitempty"`
	// Tags are put on the group, and by it on instances that it launches. A tag
	// that is taken out here stays at AWS.
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// DeletionPolicy is Keep or DeleteWhenEmpty.
	// +kubebuilder:default=Keep
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Keep','DeleteWhenEmpty']",messageExpression="'unknown deletionPolicy ' + self + ': write Keep or DeleteWhenEmpty'"
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// LaunchTemplate names an EC2 launch template.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) != has(self.name)",message="a launch template is named by its id or by its name: write one of the two"
type LaunchTemplate struct {
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ID string `json:"id,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// Version is a number, $Latest or $Default.
	// +kubebuilder:default="$Default"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Version string `json:"version,omitempty"`
}

// MixedInstances is a mixed instances policy (EC2 Auto Scaling API Reference,
// MixedInstancesPolicy).
type MixedInstances struct {
	// InstanceTypes are what may be launched; on demand, in this order of
	// preference.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	// +listType=atomic
	InstanceTypes []string `json:"instanceTypes"`
	// OnDemandBase is how many instances are on demand in any case.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OnDemandBase int32 `json:"onDemandBase,omitempty"`
	// OnDemandPercent of those above the base are on demand, the rest on spot.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	OnDemandPercent int32 `json:"onDemandPercent"`
	// SpotAllocationStrategy is price-capacity-optimized unless it is given.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	SpotAllocationStrategy string `json:"spotAllocationStrategy,omitempty"`
}

// WarmPool is a warm pool (EC2 Auto Scaling API Reference, PutWarmPool).
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxPreparedCapacity) || !has(self.minSize) || self.minSize <= self.maxPreparedCapacity",message="minSize of the warm pool is larger than its maxPreparedCapacity, which counts the instances in service as well"
type WarmPool struct {
	// State is what warm instances do: Stopped, Running or Hibernated.
	// +kubebuilder:default=Stopped
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Stopped','Running','Hibernated']",messageExpression="'unknown state ' + self + ': write Stopped, Running or Hibernated'"
	// +optional
	State string `json:"state,omitempty"`
	// MinSize is how many instances are warm at least.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSize int32 `json:"minSize,omitempty"`
	// MaxPreparedCapacity bounds the instances in service and warm together;
	// the group's maxSize where it is not given.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPreparedCapacity *int32 `json:"maxPreparedCapacity,omitempty"`
	// ReuseOnScaleIn returns instances to the pool when the group shrinks.
	// +optional
	ReuseOnScaleIn bool `json:"reuseOnScaleIn,omitempty"`
}

// LifecycleHooks are the hooks of a group that Lifeboat answers.
//
// +kubebuilder:validation:XValidation:rule="(has(self.launch) && has(self.launch.name) ? self.launch.name : 'lifeboat-launch') != (has(self.terminate) && has(self.terminate.name) ? self.terminate.name : 'lifeboat-terminate')",message="the launch hook and the terminate hook have the same name: a group has one hook of a name"
type LifecycleHooks struct {
	// Launch holds a new instance until its node is Ready, or it is warm.
	// +optional
	Launch *LifecycleHook `json:"launch,omitempty"`
	// Terminate holds an instance until its node is drained.
	// +optional
	Terminate *LifecycleHook `json:"terminate,omitempty"`
}

// LifecycleHook is one lifecycle hook (EC2 Auto Scaling API Reference,
// PutLifecycleHook).
type LifecycleHook struct {
	// Name is lifeboat-launch or lifeboat-terminate where it is empty.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_/-]*$')",messageExpression="'name ' + self + ' is no name of a lifecycle hook: letters, digits, -, _ and / only'"
	// +optional
	Name string `json:"name,omitempty"`
	// TimeoutSeconds is how long Auto Scaling waits for an answer or a
	// heartbeat: 600 for a launch and 300 for a termination where it is not given.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=7200
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// OnTimeout is what Auto Scaling does without an answer: ABANDON or CONTINUE;
	// ABANDON for a launch and CONTINUE for a termination where it is not given,
	// but ABANDON for that too where the group retains what is not drained.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['ABANDON','CONTINUE']",messageExpression="'unknown onTimeout ' + self + ': write ABANDON or CONTINUE'"
	// +optional
	OnTimeout string `json:"onTimeout,omitempty"`
	// PatienceSeconds bounds for how long Lifeboat extends a launch by heartbeats
	// while the instance makes progress, in all: 1800 where it is not given. For
	// a termination the policy's time is what counts.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=172800
	// +optional
	PatienceSeconds int32 `json:"patienceSeconds,omitempty"`
}

// Condition types of a NodeGroup, besides ConditionReady.
const (
	// ConditionFound is true while the group is there at AWS.
	ConditionFound = "Found"
	// ConditionHooksReady is true while both of Lifeboat's hooks are there and as
	// they have to be.
	ConditionHooksReady = "HooksReady"
	// ConditionSynced is true while the group is as declared, as far as
	// spec.management has it changed.
	ConditionSynced = "Synced"
)

// FinalizerNodeGroup keeps a NodeGroup with deletionPolicy DeleteWhenEmpty until
// its group is deleted at AWS.
const FinalizerNodeGroup = "lifeboat.dev/nodegroup"
