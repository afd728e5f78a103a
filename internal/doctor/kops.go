package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// kOpsHook is the hook of kOps' warm pools. Since version 1 with the minor version kOpsFixed, kOps
// creates it before the pool (kOps pull requests 16583 and 16603).
const (
	kOpsHook  = "kops-warmpool"
	kOpsFixed = 29
)

// kOpsImage is the image of kops-controller; its tag is kOps' version (kOps,
// upup/models/cloudup/resources/addons/kops-controller.addons.k8s.io).
var kOpsImage = regexp.MustCompile(`(?:^|/)kops-controller:v?1\.([0-9]{1,4})(?:[.-]|@|$)`)

// oldKOps reports a kOps that creates warm pools before their hook, if a group has its hook.
func oldKOps(all []Workload, groups []Group) []finding.Finding {
	hasPool := slices.ContainsFunc(groups, func(g Group) bool {
		return slices.ContainsFunc(g.Hooks, func(h Hook) bool { return h.Name == kOpsHook })
	})
	for _, w := range all {
		for _, image := range w.Images {
			m := kOpsImage.FindStringSubmatch(image)
			if m == nil || !hasPool {
				continue
			}
			if minor, err := strconv.Atoi(m[1]); err == nil && minor < kOpsFixed {
				return []finding.Finding{{
					Severity: finding.Warning, ID: idKOpsOld, Object: w.Object,
					Problem: fmt.Sprintf("kOps 1.%d creates a warm pool before its hook %s: instances that launch between the two are terminated later, although their nodes are Ready",
						minor, kOpsHook),
					Fix: fmt.Sprintf("upgrade kOps to 1.%d or later, then kops update cluster; until then let Lifeboat answer the hook: spec.hooks of a NodeGroup (docs/guides/kops.md)", kOpsFixed),
				}}
			}
		}
	}
	return nil
}

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
