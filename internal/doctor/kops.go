package doctor

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// overwritten says how to keep an edit of a file that kOps writes: kops update cluster
// --target terraform writes it again.
func (e *diagnosis) overwritten(from string) string {
	file, _, _ := strings.Cut(from, ", ")
	cluster := e.KOps[file]
	if cluster == "" {
		return ""
	}
	return "; kops update cluster overwrites the edit, and the Cluster spec has no field for it. To keep it, give Lifeboat its own queue: lifeboat aws setup --cluster " +
		cluster + ", then set spec.nodeTerminationHandler.enabled to false in the Cluster spec"
}

// kOpsField returns the fix in the Cluster spec for a kind that kOps' rules do not
// deliver, or "" (kOps documentation, "Node termination handler").
func (e *diagnosis) kOpsField(kind string) string {
	file, _, _ := strings.Cut(e.queue.From, ", ")
	if e.KOps[file] == "" || kind != notice.KindRebalanceRecommendation {
		return ""
	}
	return "in the Cluster spec, set spec.nodeTerminationHandler.enableRebalanceDraining to true, then kops update cluster"
}
