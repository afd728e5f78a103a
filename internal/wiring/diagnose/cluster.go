package diagnose

import "strings"

// Cluster is what is known of who else is at work in the cluster. The zero value
// says that nothing is known.
type Cluster struct {
	// Lifeboat is how many of Lifeboat's controllers run; nil if not known.
	Lifeboat *int
	// Karpenter and NTH (AWS Node Termination Handler) are nil where they do not
	// run, or nobody looked.
	Karpenter, NTH *Tool
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
