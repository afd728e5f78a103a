package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Order says when a pod leaves, beside the others of its node.
type Order string

const (
	// OrderFirst leaves before the others.
	OrderFirst Order = "First"
	// OrderNormal leaves between those of First and those of Last.
	OrderNormal Order = "Normal"
	// OrderLast leaves once the others have.
	OrderLast Order = "Last"
)

// Workload treats pods differently by what they are. All given parts must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) || has(self.selector) || has(self.matchOwnerKinds)",message="a workload has to say which pods it is for: write namespaces, selector or matchOwnerKinds"
// +kubebuilder:validation:XValidation:rule="has(self.order) || has(self.strategy)",message="a workload has to say what is different for its pods: write order or strategy"
type Workload struct {
	// Name is used where the treatment is reported; else its place is.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Namespaces are the namespaces of the pods.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector selects pods by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// MatchOwnerKinds are kinds of what controls the pod, such as StatefulSet,
	// Deployment, ReplicaSet or Job; None is for pods that nothing controls.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	MatchOwnerKinds []string `json:"matchOwnerKinds,omitempty"`
	// Order says when they leave: First, Normal or Last. Pods that are critical
	// to the cluster leave after all others in any case.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['First','Normal','Last']",messageExpression="'unknown order ' + self + ': write First, Normal or Last'"
	// +optional
	Order Order `json:"order,omitempty"`
	// Strategy says how they are moved, in place of the rule's: Evict, Surge, or
	// Never, which leaves them where they are until the instance goes.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Evict','Surge','Never']",messageExpression="'unknown strategy ' + self + ': write Evict, Surge or Never'"
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
}

// Budget bounds how many nodes are drained at the same time. A node counts from
// when it is cordoned until its pods have left it. It is for deadlines that are
// soft: a hard one waits for nobody.
type Budget struct {
	// MaxConcurrent is a number of nodes, or a percentage, rounded up, of those
	// that the policy selects.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
	MaxConcurrent intstr.IntOrString `json:"maxConcurrent"`
}

// Terminations bounds forced terminations. A pool is the node's NodePool or node
// group, or, where it is of none, all nodes of the cluster that are of none.
type Terminations struct {
	// MaxConcurrent is a number of nodes, or a percentage, rounded up, of the
	// nodes of the pool; 20% where nothing is said.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
	MaxConcurrent intstr.IntOrString `json:"maxConcurrent"`
}

// HookTime says when a hook runs.
type HookTime string

const (
	// HookBeforeDrain runs once the node is cordoned and before any pod is
	// asked to leave. Pods wait for it, but never past their last call.
	HookBeforeDrain HookTime = "BeforeDrain"
	// HookAfterDrain runs once the pods have left, before the instance is
	// terminated and before the cloud is answered.
	HookAfterDrain HookTime = "AfterDrain"
)

// HookFailure says what happens when a hook fails.
type HookFailure string

const (
	// HookContinue goes on without it.
	HookContinue HookFailure = "Continue"
	// HookHold waits for a person's go-ahead (`lifeboat approve NODE`), but not
	// past the pods' last call.
	HookHold HookFailure = "Hold"
)

// Hook is something that runs before or after the drain of a node. It is run
// at least once: a hook has to bear to be run again.
//
// +kubebuilder:validation:XValidation:rule="has(self.job) != has(self.webhook)",message="a hook is either a job or a webhook: write one of the two"
type Hook struct {
	// Name is what the hook is reported as.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=30
	Name string `json:"name"`
	// When says when it runs: BeforeDrain or AfterDrain.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['BeforeDrain','AfterDrain']",messageExpression="'unknown when ' + self + ': write BeforeDrain or AfterDrain'"
	When HookTime `json:"when"`
	// Job is run and has to complete.
	// +optional
	Job *HookJob `json:"job,omitempty"`
	// Webhook is called and has to answer with a status from 200 to 299.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`
	// Timeout is how long one try may take; 1m if nothing is said.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must be between 1s and 24h, such as 60s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Retries is how often it is tried again after it has failed or timed out.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Retries int32 `json:"retries,omitempty"`
	// OnFailure says what happens when the last try has failed: Continue (the
	// default) or Hold.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Continue','Hold']",messageExpression="'unknown onFailure ' + self + ': write Continue or Hold'"
	// +optional
	OnFailure HookFailure `json:"onFailure,omitempty"`
}

// HookJob is a Job that is made for each node. Its containers get the
// environment variables LIFEBOAT_NODE, LIFEBOAT_INSTANCE_ID, LIFEBOAT_KIND,
// LIFEBOAT_REASON, LIFEBOAT_DEADLINE (RFC 3339, empty where there is none),
// LIFEBOAT_POLICY, LIFEBOAT_HOOK and LIFEBOAT_TRY.
type HookJob struct {
	// Namespace is where it runs: one that Lifeboat was given the right to make
	// Jobs in, or, if empty, Lifeboat's own.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Template is the Job's metadata (labels, annotations) and spec, as in a
	// CronJob's jobTemplate.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template"`
}

// Webhook is an HTTP request, a POST, that is made.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.urlFrom)",message="a webhook has either url or urlFrom: write one of the two"
type Webhook struct {
	// URL is where to, with http or https.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://') || self.startsWith('http://')",messageExpression="'url ' + self + ' has no scheme: write https:// (or http://) before it'"
	// +optional
	URL string `json:"url,omitempty"`
	// URLFrom takes it from a Secret in Lifeboat's own namespace, for URLs that
	// are secrets, as of Slack's incoming webhooks.
	// +optional
	URLFrom *SecretKey `json:"urlFrom,omitempty"`
	// Body is a template of the request's body in Go's template language, with
	// the fields Node, InstanceID, Kind, Policy, Phase, Reason, Message,
	// Deadline, Drill, Pods, with if and with, and with the functions json,
	// print, printf, urlquery, not, and, or, eq, ne. Without it the body is all
	// of these fields as JSON.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Body string `json:"body,omitempty"`
	// Headers are sent with the request; Content-Type is application/json
	// where they do not say otherwise.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Headers map[string]string `json:"headers,omitempty"`
}

// SecretKey is an entry of a Secret in Lifeboat's own namespace.
type SecretKey struct {
	// Name is the Secret's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the entry in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// Notification tells people what happens to the policy's nodes, one request for
// all that happened at the same moment. It is delivered at least once, or tried
// three times; nothing waits for it.
type Notification struct {
	// Name is what the notification is reported as.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=30
	Name string `json:"name"`
	// Reasons are those of timeline entries that are told, such as Drained or
	// PodLost, or "*" for all. If empty: NoticeReceived, AwaitingApproval,
	// Cordoned, Drained, PodLost, HookFailed, PutBack and Completed.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Reasons []string `json:"reasons,omitempty"`
	// Webhook is what is called.
	Webhook Webhook `json:"webhook"`
}
