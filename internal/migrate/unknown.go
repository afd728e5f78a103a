package migrate

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// fields are the fields of v1 at a path (CRDs of Karpenter v1.14).
type fields struct {
	path  []string
	names []string
}

var nodePoolFields = []fields{
	{[]string{"spec"}, []string{"template", "disruption", "limits", "weight", "replicas"}},
	{[]string{"spec", "disruption"}, []string{"consolidateAfter", "consolidationPolicy", "budgets"}},
	{[]string{"spec", "template"}, []string{"metadata", "spec"}},
	{[]string{"spec", "template", "metadata"}, []string{"labels", "annotations"}},
	{[]string{"spec", "template", "spec"}, []string{
		"taints", "startupTaints", "requirements", "nodeClassRef", "terminationGracePeriod", "expireAfter",
		"kubelet", // reported by kubelets if it is still present
	}},
	{[]string{"spec", "template", "spec", "nodeClassRef"}, []string{"group", "kind", "name"}},
}

var kubeletFields = []string{
	"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod",
	"evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota",
}

var nodeClassFields = []fields{
	{[]string{"spec"}, []string{
		"subnetSelectorTerms", "securityGroupSelectorTerms", "capacityReservationSelectorTerms", "placementGroupSelector", "associatePublicIPAddress",
		"ipPrefixCount", "amiSelectorTerms", "amiFamily", "userData", "role", "instanceProfile", "tags", "kubelet", "blockDeviceMappings",
		"instanceStorePolicy", "networkInterfaces", "detailedMonitoring", "metadataOptions", "connectionTracking", "context", "cpuOptions",
	}},
	{[]string{"spec", "kubelet"}, kubeletFields},
	{[]string{"spec", "metadataOptions"}, []string{"httpEndpoint", "httpProtocolIPv6", "httpPutResponseHopLimit", "httpTokens"}},
}

// unknownFields reports fields that v1 does not have: kubectl refuses them, and the
// API server drops them.
func (c *converter) unknownFields(o *object) {
	var known []fields
	switch {
	case o.is(coreGroup, "NodePool"):
		known = nodePoolFields
	case o.is(awsGroup, "EC2NodeClass"):
		known = nodeClassFields
	}
	for _, at := range known {
		path := ""
		for _, name := range at.path {
			path = join(path, name)
		}
		m := mapping(o.node, at.path...)
		for i := 0; m != nil && i+1 < len(m.Content); i += 2 {
			if key := m.Content[i]; !slices.Contains(at.names, key.Value) {
				c.addFinding(o, finding.Warning, "unknown-field", join(path, key.Value), key, "Karpenter v1.14 does not have this field: kubectl refuses it, and the API server drops it. It was not changed.",
					"Delete it, or correct its name.")
			}
		}
	}
}
