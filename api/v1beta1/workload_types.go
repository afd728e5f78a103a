package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Order says when a pod is evicted, relative to the other pods of its node.
type Order string

const (
	// OrderFirst evicts the pod before all others.
	OrderFirst Order = "First"
	// OrderNormal evicts the pod after those of First and before those of Last.
	OrderNormal Order = "Normal"
	// OrderLast evicts the pod after all others have left.
	OrderLast Order = "Last"
)

// Workload gives some pods a different order or strategy. A pod matches when
// all given fields match.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) || has(self.selector) || has(self.matchOwnerKinds)",message="a workload has to say which pods it is for: write namespaces, selector or matchOwnerKinds"
// +kubebuilder:validation:XValidation:rule="has(self.order) || has(self.strategy)",message="a workload has to say what is different for its pods: write order or strategy"
type Workload struct {
	// Name identifies the workload in status and messages. If empty, its index
	// is used.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Namespaces lists the namespaces of the pods.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector selects pods by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// MatchOwnerKinds lists the kinds of the pod's controller, such as
	// StatefulSet, Deployment, ReplicaSet or Job. None matches pods without a
	// controller.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	MatchOwnerKinds []string `json:"matchOwnerKinds,omitempty"`
	// Order says when the pods are evicted: First, Normal or Last. Pods that
	// are critical to the cluster always leave after all others.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['First','Normal','Last']",messageExpression="'unknown order ' + self + ': write First, Normal or Last'"
	// +optional
	Order Order `json:"order,omitempty"`
	// Strategy overrides the rule's strategy for these pods: Evict, Surge or
	// Never. Never leaves the pods on the node until the instance stops.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Evict','Surge','Never']",messageExpression="'unknown strategy ' + self + ': write Evict, Surge or Never'"
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
}

// Budget limits how many nodes are drained at the same time. A node counts from
// its cordon until its pods have left. The budget applies to soft deadlines
// only; a node with a hard deadline never waits for it.
type Budget struct {
	// MaxConcurrent is a number of nodes, or a percentage of the nodes that the
	// policy selects. A percentage is rounded up.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
	// +required
	MaxConcurrent intstr.IntOrString `json:"maxConcurrent"`
}

// Terminations limits forced terminations per pool. A pool is the node's
// NodePool or node group. All nodes of the cluster that belong to neither form
// one pool.
type Terminations struct {
	// MaxConcurrent is a number of nodes, or a percentage of the pool's nodes.
	// A percentage is rounded up. The default is 20%.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
	// +required
	MaxConcurrent intstr.IntOrString `json:"maxConcurrent"`
}

// HookTime says when a hook runs.
type HookTime string

const (
	// HookBeforeDrain runs the hook after the cordon and before the first
	// eviction. Pods wait for it, but not longer than their last call.
	HookBeforeDrain HookTime = "BeforeDrain"
	// HookAfterDrain runs the hook after the pods have left. The termination of
	// the instance and the answer to the cloud wait for it.
	HookAfterDrain HookTime = "AfterDrain"
)

// HookFailure says what happens when a hook fails.
type HookFailure string

const (
	// HookContinue ignores the failure and continues.
	HookContinue HookFailure = "Continue"
	// HookHold waits for a person's approval (`lifeboat approve NODE`), but not
	// longer than the pods' last call.
	HookHold HookFailure = "Hold"
)

// Hook runs a Job or calls a webhook before or after the drain of a node. It
// runs at least once, so it must be idempotent.
//
// +kubebuilder:validation:XValidation:rule="has(self.job) != has(self.webhook)",message="a hook is either a job or a webhook: write one of the two"
type Hook struct {
	// Name identifies the hook in status and messages.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=30
	// +required
	Name string `json:"name"`
	// When says when the hook runs: BeforeDrain or AfterDrain.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['BeforeDrain','AfterDrain']",messageExpression="'unknown when ' + self + ': write BeforeDrain or AfterDrain'"
	// +required
	When HookTime `json:"when"`
	// Job is the Job to run. It must complete.
	// +optional
	Job *HookJob `json:"job,omitempty"`
	// Webhook is the request to send. It must return a status from 200 to 299.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`
	// Timeout limits the time of one try. The default is 1m.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must be between 1s and 24h, such as 60s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Retries is the number of further tries after a failure or a timeout.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Retries int32 `json:"retries,omitempty"`
	// OnFailure says what happens after the last try has failed: Continue (the
	// default) or Hold.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Continue','Hold']",messageExpression="'unknown onFailure ' + self + ': write Continue or Hold'"
	// +optional
	OnFailure HookFailure `json:"onFailure,omitempty"`
}

// HookJob is a Job that Lifeboat creates for each node. Its containers get the
// environment variables LIFEBOAT_NODE, LIFEBOAT_INSTANCE_ID, LIFEBOAT_KIND,
// LIFEBOAT_REASON, LIFEBOAT_DEADLINE (RFC 3339, empty without a deadline),
// LIFEBOAT_POLICY, LIFEBOAT_HOOK and LIFEBOAT_TRY.
type HookJob struct {
	// Namespace is the namespace of the Job: one that the chart's value
	// hooks.namespaces names. The default is that namespace, if there is one only.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Template is the Job's metadata (labels, annotations) and spec, as in a
	// CronJob's jobTemplate.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +required
	Template runtime.RawExtension `json:"template"`
}

// Webhook is an HTTP POST request.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.urlFrom)",message="a webhook has either url or urlFrom: write one of the two"
type Webhook struct {
	// URL is the address of the request, with the scheme http or https.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://') || self.startsWith('http://')",messageExpression="'url ' + self + ' has no scheme: write https:// (or http://) before it'"
	// +optional
	URL string `json:"url,omitempty"`
	// URLFrom reads the URL from a Secret in Lifeboat's own namespace. Use it
	// for URLs that contain a credential, such as Slack's incoming webhooks.
	// +optional
	URLFrom *SecretKey `json:"urlFrom,omitempty"`
	// Body is the request's body as a Go template. It can use the fields Node,
	// InstanceID, Kind, Policy, Phase, Reason, Message, Deadline, Drill and
	// Pods, the actions if and with, and the functions json, print, printf,
	// urlquery, raw, not, and, or, eq and ne. Links, mentions and tags in a
	// field are escaped, unless raw comes before the field. The default body is
	// a JSON object with all of these fields.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Body string `json:"body,omitempty"`
	// ValuesFrom reads values for the body from Secrets in Lifeboat's own
	// namespace. Use it for a credential in the body, such as PagerDuty's routing
	// key. The body writes the value with the name routingKey as
	// {{.Values.routingKey}}. The Secret's annotation lifeboat.dev/webhook-hosts
	// lists the hosts that may receive it. A Secret that contains the URL too
	// needs no annotation.
	// +kubebuilder:validation:MaxProperties=8
	// +optional
	ValuesFrom map[string]SecretKey `json:"valuesFrom,omitempty"`
	// Headers are added to the request. The default Content-Type is
	// application/json.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Headers map[string]string `json:"headers,omitempty"`
	// HeadersFrom reads the values of headers from Secrets in Lifeboat's own
	// namespace. Use it for credentials, such as an Authorization header. The
	// Secret's annotation lifeboat.dev/webhook-hosts lists the hosts that may
	// receive it. A Secret that contains the URL too needs no annotation.
	// +kubebuilder:validation:MaxProperties=8
	// +optional
	HeadersFrom map[string]SecretKey `json:"headersFrom,omitempty"`
}

// SecretKey is one key of a Secret in Lifeboat's own namespace.
type SecretKey struct {
	// Name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Key is the key in the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// Notification sends a webhook request about what happens to the policy's
// nodes. One request covers all timeline entries of the same moment. Delivery
// is tried up to three times and can repeat a request. Nothing waits for it.
type Notification struct {
	// Name identifies the notification in status and messages.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=30
	// +required
	Name string `json:"name"`
	// Reasons lists the reasons of the timeline entries to send, such as
	// Drained or PodLost, or "*" for all. The default is NoticeReceived,
	// AwaitingApproval, Cordoned, Drained, PodLost, HookFailed, NodeRestored and
	// Completed.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Reasons []string `json:"reasons,omitempty"`
	// Webhook is the request to send.
	// +required
	Webhook Webhook `json:"webhook"`
}
