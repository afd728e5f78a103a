package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeGroup declares or adopts an Auto Scaling group with its warm pool and
// lifecycle hooks. To adopt an existing group, name it: Lifeboat answers its
// launch hook, and changes nothing else unless spec.management says so.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="a NodeGroup's name is the value of a label of its nodes, and has at most 63 characters: choose a shorter name, and write the group's name to spec.autoScalingGroup"
// +kubebuilder:resource:scope=Cluster,shortName=lbng
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
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NodeGroupSpec `json:"spec,omitempty"`
	// +optional
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

// Management says how much of an Auto Scaling group Lifeboat changes.
type Management string

const (
	// ManageNothing reports problems and changes nothing. Lifeboat still
	// answers hooks. This is the default.
	ManageNothing Management = "Observe"
	// ManageHooks creates or corrects Lifeboat's two hooks.
	ManageHooks Management = "Hooks"
	// ManageAll creates the group if it does not exist, and keeps it as
	// declared.
	ManageAll Management = "All"
)

// DeletionPolicy says what happens to the Auto Scaling group when its NodeGroup
// is deleted.
type DeletionPolicy string

const (
	// KeepGroup leaves the group and its nodes unchanged. This is the default.
	KeepGroup DeletionPolicy = "Keep"
	// DeleteGroup deletes the group, with its warm pool, when no instance is in
	// service. It never terminates a running node.
	DeleteGroup DeletionPolicy = "DeleteWhenEmpty"
)

// NodeGroupSpec is the desired state of the group.
//
// +kubebuilder:validation:XValidation:rule="!has(self.management) || self.management != 'All' || (has(self.launchTemplate) && has(self.maxSize) && has(self.subnets))",message="management All needs launchTemplate, maxSize and subnets, from which the group is created"
// +kubebuilder:validation:XValidation:rule="(has(self.autoScalingGroup) ? self.autoScalingGroup : \"\") == (has(oldSelf.autoScalingGroup) ? oldSelf.autoScalingGroup : \"\")",message="autoScalingGroup cannot change: make another NodeGroup"
// +kubebuilder:validation:XValidation:rule="!has(self.deletionPolicy) || self.deletionPolicy != 'DeleteWhenEmpty' || (has(self.management) && self.management == 'All')",message="deletionPolicy DeleteWhenEmpty deletes the group: write management: All as well, or Keep"
// +kubebuilder:validation:XValidation:rule="!has(self.mixedInstances) || has(self.launchTemplate)",message="mixedInstances needs launchTemplate, from which its instances are launched"
// +kubebuilder:validation:XValidation:rule="!has(self.retainUndrained) || !self.retainUndrained || !has(self.hooks) || !has(self.hooks.terminate) || !has(self.hooks.terminate.onTimeout) || self.hooks.terminate.onTimeout != 'CONTINUE'",message="retainUndrained keeps instances whose terminate hook was abandoned, and onTimeout CONTINUE never abandons: write ABANDON, or leave onTimeout out"
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || !has(self.maxSize) || self.minSize <= self.maxSize",message="minSize is larger than maxSize"
type NodeGroupSpec struct {
	// AutoScalingGroup is the name of the Auto Scaling group. The default is
	// the name of this object.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AutoScalingGroup string `json:"autoScalingGroup,omitempty"`
	// Management says how much Lifeboat changes at AWS. Observe changes
	// nothing. Hooks maintains Lifeboat's two lifecycle hooks only. All creates
	// the group and keeps it as declared here. Lifeboat never changes the
	// desired capacity.
	// +kubebuilder:default=Observe
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Observe','Hooks','All']",messageExpression="'unknown management ' + self + ': write Observe, Hooks or All'"
	// +optional
	Management Management `json:"management,omitempty"`
	// LaunchTemplate is the launch template of the group's instances.
	// +optional
	LaunchTemplate *LaunchTemplate `json:"launchTemplate,omitempty"`
	// MixedInstances lets the group launch several instance types, on demand
	// and spot.
	// +optional
	MixedInstances *MixedInstances `json:"mixedInstances,omitempty"`
	// MinSize is the minimum number of instances in service.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSize *int32 `json:"minSize,omitempty"`
	// MaxSize is the maximum number of instances in service.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxSize *int32 `json:"maxSize,omitempty"`
	// Subnets lists the ids of the subnets to launch into. Management All needs
	// at least one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^subnet-[0-9a-f]+$`
	// +listType=set
	// +optional
	Subnets []string `json:"subnets,omitempty"`
	// CapacityRebalance launches a replacement when AWS recommends a rebalance.
	// +optional
	CapacityRebalance *bool `json:"capacityRebalance,omitempty"`
	// WarmPool declares the group's pool of pre-initialized instances. With
	// management All, Lifeboat deletes a pool that is not declared.
	// +optional
	WarmPool *WarmPool `json:"warmPool,omitempty"`
	// Hooks configures the lifecycle hooks that Lifeboat answers. Each field
	// has its own default.
	// +optional
	Hooks LifecycleHooks `json:"hooks,omitempty"`
	// RetainUndrained keeps an instance whose terminate hook was abandoned, in
	// the state Terminating:Retained, until a user terminates it (EC2 Auto
	// Scaling API Reference, InstanceLifecyclePolicy).
	// +optional
	RetainUndrained *bool `json:"retainUndrained,omitempty"`
	// Tags are set on the group and on the instances that it launches. Removing
	// a tag here does not remove it at AWS.
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// DeletionPolicy says what happens at AWS when this object is deleted: Keep
	// (the default) or DeleteWhenEmpty.
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
	// ID is the id of the launch template.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ID string `json:"id,omitempty"`
	// Name is the name of the launch template.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// Version is a version number, $Latest or $Default.
	// +kubebuilder:default="$Default"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Version string `json:"version,omitempty"`
}

// MixedInstances is a mixed instances policy (EC2 Auto Scaling API Reference,
// MixedInstancesPolicy).
type MixedInstances struct {
	// InstanceTypes lists the instance types that may be launched. For
	// on-demand instances, the order is the order of preference.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +required
	InstanceTypes []string `json:"instanceTypes"`
	// OnDemandBase is the number of instances that are always on demand.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OnDemandBase int32 `json:"onDemandBase,omitempty"`
	// OnDemandPercent is the percentage of on-demand instances above the base.
	// The others are spot instances.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	OnDemandPercent int32 `json:"onDemandPercent"`
	// SpotAllocationStrategy is the allocation strategy for spot instances. The
	// default is price-capacity-optimized.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	SpotAllocationStrategy string `json:"spotAllocationStrategy,omitempty"`
}

// WarmPool declares a warm pool (EC2 Auto Scaling API Reference, PutWarmPool).
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxPreparedCapacity) || !has(self.minSize) || self.minSize <= self.maxPreparedCapacity",message="minSize of the warm pool is larger than its maxPreparedCapacity, which counts the instances in service as well"
type WarmPool struct {
	// State is the state of warm instances: Stopped, Running or Hibernated.
	// +kubebuilder:default=Stopped
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Stopped','Running','Hibernated']",messageExpression="'unknown state ' + self + ': write Stopped, Running or Hibernated'"
	// +optional
	State string `json:"state,omitempty"`
	// MinSize is the minimum number of warm instances.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSize int32 `json:"minSize,omitempty"`
	// MaxPreparedCapacity limits the instances in service plus the warm
	// instances. The default is the group's maxSize.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPreparedCapacity *int32 `json:"maxPreparedCapacity,omitempty"`
	// ReuseOnScaleIn returns instances to the pool when the group scales in.
	// +optional
	ReuseOnScaleIn bool `json:"reuseOnScaleIn,omitempty"`
}

// LifecycleHooks configures the lifecycle hooks that Lifeboat answers.
//
// +kubebuilder:validation:XValidation:rule="(has(self.launch) && has(self.launch.name) ? self.launch.name : 'lifeboat-launch') != (has(self.terminate) && has(self.terminate.name) ? self.terminate.name : 'lifeboat-terminate')",message="the launch hook and the terminate hook have the same name: a group has one hook of a name"
type LifecycleHooks struct {
	// Launch holds a new instance until its node is Ready or the instance is
	// warm.
	// +optional
	Launch *LifecycleHook `json:"launch,omitempty"`
	// Terminate holds an instance until its node is drained.
	// +optional
	Terminate *LifecycleHook `json:"terminate,omitempty"`
}

// LifecycleHook is one lifecycle hook (EC2 Auto Scaling API Reference,
// PutLifecycleHook).
type LifecycleHook struct {
	// Name is the name of the hook. The default is lifeboat-launch or
	// lifeboat-terminate.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_/-]*$')",messageExpression="'name ' + self + ' is no name of a lifecycle hook: letters, digits, -, _ and / only'"
	// +optional
	Name string `json:"name,omitempty"`
	// TimeoutSeconds is how long Auto Scaling waits for an answer or a
	// heartbeat. The default is 600 for a launch and 300 for a termination.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=7200
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// OnTimeout is what Auto Scaling does without an answer: ABANDON or
	// CONTINUE. The default for a launch is ABANDON. The default for a
	// termination is CONTINUE, or ABANDON if retainUndrained is set.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['ABANDON','CONTINUE']",messageExpression="'unknown onTimeout ' + self + ': write ABANDON or CONTINUE'"
	// +optional
	OnTimeout string `json:"onTimeout,omitempty"`
	// PatienceSeconds limits the total time for which Lifeboat extends a launch
	// by heartbeats while the instance makes progress. The default is 1800. For
	// a termination the policy's drainTimeout applies instead.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=172800
	// +optional
	PatienceSeconds int32 `json:"patienceSeconds,omitempty"`
}

// Condition types of a NodeGroup, besides ConditionReady.
const (
	// ConditionFound is true while the group exists at AWS.
	ConditionFound = "Found"
	// ConditionHooksReady is true while both of Lifeboat's hooks exist with the
	// declared settings.
	ConditionHooksReady = "HooksReady"
	// ConditionSynced is true while the group matches the fields of the spec
	// that spec.management lets Lifeboat change.
	ConditionSynced = "Synced"
)

// FinalizerNodeGroup keeps a NodeGroup with deletionPolicy DeleteWhenEmpty
// until its group is deleted at AWS.
const FinalizerNodeGroup = "lifeboat.dev/nodegroup"
