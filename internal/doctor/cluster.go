package doctor

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Cluster is what is known about other programs in the cluster. The zero value means
// that nothing is known.
type Cluster struct {
	// Lifeboat is the number of running Lifeboat controllers; nil if unknown.
	Lifeboat *int
	// Groups are the cluster's Auto Scaling groups that were read.
	Groups []Group
	// Guard is set if Karpenter may not delete nodes whose policy delays or refuses that.
	Guard bool
	// Void are the policies, with the reason, that Karpenter defeats if it deletes their nodes.
	Void []string
	// Karpenter and NTH (AWS Node Termination Handler) are nil if they do not run, or
	// if that is unknown.
	Karpenter, NTH *Tool
	// Twins are controllers of other installations of Lifeboat in the cluster.
	Twins []Tool
	// Workloads are all Deployments and DaemonSets, and Nodes all nodes.
	Workloads []Workload
	Nodes     []corev1.Node
}

// Group is an Auto Scaling group of the cluster, with its hooks.
type Group struct {
	Name  string
	Hooks []Hook
}

// Hook is a lifecycle hook.
type Hook struct {
	Name        string
	Terminating bool
	// Own is true if Lifeboat completes the hook.
	Own bool
	// Timeout is the hook's heartbeat timeout.
	Timeout time.Duration
	// Target is the ARN of the queue or topic that the hook notifies in addition to
	// EventBridge.
	Target string
}

// Tool is another program that handles interruptions.
type Tool struct {
	// Object is the workload that runs it, for example "deployment
	// kube-system/karpenter".
	Object string
	// Namespace and Name are those of the workload.
	Namespace, Name string
	// Version is empty if unknown.
	Version string
	// Queue is the name or the URL of the queue that it reads; empty if it reads
	// none.
	Queue string
	// ZonalShift is set if Karpenter follows ARC zonal shifts.
	ZonalShift bool
}

// reads reports whether the tool reads the queue with this name.
func (t *Tool) reads(queue string) bool {
	return t != nil && t.Queue != "" && queue != "" && QueueName(t.Queue) == queue
}

// QueueName returns the name in a name, URL or ARN of a queue.
func QueueName(queue string) string { return queue[strings.LastIndexAny(queue, "/:")+1:] }
