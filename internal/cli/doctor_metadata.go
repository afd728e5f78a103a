package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

// metadataAccess holds the metadata options of an instance (EC2 User Guide,
// "Configure the Instance Metadata Service options").
type metadataAccess struct {
	node, instance string
	// tokens is true if the metadata service requires a token. hops is the hop
	// limit of the token.
	tokens bool
	hops   int32
}

// instancesPerCall is the number of instances in one API call.
const instancesPerCall = 100

// readMetadata reads the metadata options of the instances that are in groups
// and have a node.
func (d *doctorRun) readMetadata(ctx context.Context, describe drill.DescribeInstances) {
	names := map[string]string{}
	for _, g := range d.seen {
		for _, m := range g.there.Instances {
			if node := d.nodeOf(m.ID); node != nil {
				names[m.ID] = node.Name
			}
		}
	}
	var ids []string
	for id := range names {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for some := range slices.Chunk(ids, instancesPerCall) {
		out, err := describe(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: some}}})
		if err != nil {
			d.notChecked("metadata of the instances", awsError{err})
			return
		}
		for _, r := range out.Reservations {
			for _, in := range r.Instances {
				if access, known := readAccess(in); known {
					access.node = names[access.instance]
					d.metadata = append(d.metadata, access)
				}
			}
		}
	}
}

// readAccess reads the options of an instance. It returns false if the metadata
// service is off.
func readAccess(in types.Instance) (metadataAccess, bool) {
	o := in.MetadataOptions
	if o == nil || o.HttpEndpoint == types.InstanceMetadataEndpointStateDisabled {
		return metadataAccess{}, false
	}
	return metadataAccess{
		instance: aws.ToString(in.InstanceId), tokens: o.HttpTokens == types.HttpTokensStateRequired, hops: aws.ToInt32(o.HttpPutResponseHopLimit),
	}, true
}

// metadataFindings reports the nodes on which pods can get the node's credentials.
// If those may answer lifecycle hooks, a pod can abandon every launch of the
// group.
func metadataFindings(all []metadataAccess, groups []seenGroup) []finding.Finding {
	var free, far []string
	for _, a := range all {
		switch {
		case !a.tokens:
			free = append(free, a.node)
		case a.hops > 1:
			far = append(far, a.node)
		}
	}
	const (
		what = "pods can reach the instance's metadata and get the node's permissions: if these include autoscaling:CompleteLifecycleAction, " +
			"a pod can abandon the launches of the whole group"
		fix = "set it in the launch template (MetadataOptions: HttpTokens required, HttpPutResponseHopLimit 1), and on the running instances: " +
			"aws ec2 modify-instance-metadata-options --instance-id ID --http-tokens required --http-put-response-hop-limit 1; " +
			"Lifeboat's agent then needs hostNetwork, which is the chart's default"
	)
	var out []finding.Finding
	if len(free) > 0 {
		out = append(out, finding.Finding{Severity: finding.Warning, ID: metadataOpen, Object: someNodes(free), Problem: "the metadata service requires no token (HttpTokens optional): " + what, Fix: fix})
	}
	if len(far) > 0 {
		severity := finding.Info
		if slices.ContainsFunc(groups, hasLaunchHook) {
			severity = finding.Warning
		}
		out = append(out, finding.Finding{Severity: severity, ID: metadataOpen, Object: someNodes(far), Problem: "metadata tokens reach beyond the host (hop limit over 1): " + what, Fix: fix})
	}
	return out
}

// hasLaunchHook reports whether a group has a launch hook that nodes may
// answer.
func hasLaunchHook(g seenGroup) bool {
	for _, h := range g.there.Hooks {
		if !h.Terminating && !strings.HasPrefix(h.Name, "Launch-LC-Hook") {
			return true
		}
	}
	return false
}
