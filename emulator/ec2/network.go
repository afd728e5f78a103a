package ec2

// DefaultClusterName is the cluster in the network's tags unless Options set another.
const DefaultClusterName = "sandbox"

// vpcCIDR is the address range that the subnets share.
const vpcCIDR = "10.0.0.0/16"

// SecurityGroup is a security group, without its rules.
type SecurityGroup struct {
	ID, Name, Description string
}

// SecurityGroups lists those of the VPC: the default one, which instances get unless they name
// another.
func (s *State) SecurityGroups() []SecurityGroup { return securityGroups() }

func securityGroups() []SecurityGroup {
	return []SecurityGroup{{defaultGroupID, "default", "default VPC security group"}}
}

// groupName is the name of a security group; empty for an unknown one.
func groupName(id string) string {
	for _, g := range securityGroups() {
		if g.ID == id {
			return g.Name
		}
	}
	return ""
}

// checkGroups rejects unknown security groups.
func checkGroups(ids []string) error {
	for _, id := range ids {
		if groupName(id) == "" {
			return groupNotFound(id)
		}
	}
	return nil
}

// tagNetwork puts the tags on VPC, subnets and security groups by which eksctl, the load
// balancer controller and Karpenter find them (Karpenter, Getting Started; Amazon EKS
// User Guide, Subnet tagging).
func (s *State) tagNetwork(cluster string) {
	tag := func(id, kind string, more ...string) {
		tags := map[string]string{
			"karpenter.sh/discovery": cluster, "alpha.eksctl.io/cluster-name": cluster,
			"kubernetes.io/cluster/" + cluster: "owned",
		}
		for _, k := range more {
			tags[k] = "1"
		}
		s.tagged[id] = tagged{kind, tags}
	}
	tag(vpcID, "vpc")
	for _, g := range s.SecurityGroups() {
		tag(g.ID, "security-group")
	}
	for _, n := range s.Subnets() {
		tag(n.ID, "subnet", "kubernetes.io/role/internal-elb")
	}
}
