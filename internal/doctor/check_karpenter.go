package doctor

import "github.com/lifeboat-dev/lifeboat/internal/doctor/finding"

// labelReservation is the type of the capacity reservation of Karpenter's node: "default" or
// "capacity-block" (karpenter-provider-aws, pkg/apis/v1, LabelCapacityReservationType).
const labelReservation = "karpenter.k8s.aws/capacity-reservation-type"

// checkKarpenter reports what Karpenter does beside Lifeboat without any message. It ends nodes
// of Capacity Blocks since v1.6, and follows zonal shifts since v1.12.
func checkKarpenter(e *diagnosis) []finding.Finding {
	k := e.cluster.Karpenter
	if k == nil {
		return nil
	}
	var all []finding.Finding
	blocks := 0
	for i := range e.cluster.Nodes {
		if e.cluster.Nodes[i].Labels[labelReservation] == "capacity-block" {
			blocks++
		}
	}
	if blocks > 0 && since(k.Version, 6) {
		f := finding.Finding{
			Severity: finding.Info, ID: idKarpenterBlocks, Object: someNodesOf(blocks, "node", "Capacity Blocks"),
			Problem: "Karpenter deletes them 40 minutes before the end of the block, by its own clock, and has no option to stop this. AWS sends its warning at the same time, so Karpenter or Lifeboat may be first",
			Fix:     "nothing to do for the built-in defaults; to move pods earlier, run lifeboat drain NODE in time",
		}
		if !e.cluster.Guard {
			f.Fix += "; for approvals, windows or hooks turn on the guard: helm upgrade lifeboat … --reuse-values --set karpenter.guard.enabled=true"
		}
		all = append(all, f)
	}
	if k.ZonalShift && since(k.Version, 12) {
		all = append(all, finding.Finding{
			Severity: finding.Info, ID: idKarpenterZonalShift, Object: k.Object,
			Problem: "it follows ARC zonal shifts: in a zone that is shifted away it launches nothing, replacements for Lifeboat neither, and terminates no instance. A node that Lifeboat hands over there stays until the shift ends",
			Fix:     "nothing to do; allow NodePools more than one zone, so that a replacement can start in another",
		})
	}
	return all
}
