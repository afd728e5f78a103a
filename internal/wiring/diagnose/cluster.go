package diagnose

import (
	"strings"
	"time"
)

// Cluster is what is known of who else is at work in the cluster. The zero value
// says that nothing is known.
type Cluster struct {
	// Lifeboat is how many of Lifeboat's controllers run; nil if not known.
	Lifeboat *int
	// Groups are the cluster's Auto Scaling groups, as far as they were looked at.
	Groups []Group
	// Karpenter and NTH (AWS Node Termination Handler) are nil where they do not
	// run, or nobody looked.
	Karpenter, NTH *Tool
}

// Group is an Auto Scaling group of the cluster, with the hooks that it has.
type Group struct {
	Name  string
	Hooks []Hook
}

// Hook is a lifecycle hook.
type Hook struct {
	Name        string
	Terminating bool
	// Own is true where Lifeboat answers it.
	Own bool
	// Timeout is how long it waits.
	Timeout time.Duration
	// Target is the ARN of the queue or topic that is told besides EventBridge.
	Target string
}

// Tool is a program that answers interruptions too.
type Tool struct {
	// Object is where it runs, such as "deployment kube-system/karpenter".
	Object string
	// Version is its version; empty if not known.
	Version string
	// Queue is the name or the URL of the queue it reads; empty without one.
	Queue string
}

// reads tells whether the tool reads the queue of a name.
func (t *Tool) reads(queue string) bool {
	return t != nil && t.Queue != "" && queue != "" && t.Queue[strings.LastIndexAny(t.Queue, "/:")+1:] == queue
}
