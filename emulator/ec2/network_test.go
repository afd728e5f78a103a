package ec2

import "testing"

func TestNetworkTags(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		subnet := w.Subnets()[1].ID
		same(t, "at first", w.tagsOn(defaultGroupID), map[string]string{
			"karpenter.sh/discovery": "sandbox", "alpha.eksctl.io/cluster-name": "sandbox", "kubernetes.io/cluster/sandbox": "owned",
		})
		if err := w.CreateTags([]string{subnet, vpcID}, map[string]string{"karpenter.sh/discovery": "other"}); err != nil {
			t.Fatal(err)
		}
		same(t, "changed tag", w.tagsOn(subnet)["karpenter.sh/discovery"], "other")
		for id, code := range map[string]string{
			"subnet-1": "InvalidSubnetID.NotFound", "sg-1": "InvalidGroup.NotFound", "vpc-1": "InvalidVpcID.NotFound",
			"lt-1": "InvalidLaunchTemplateId.NotFound", "fleet-1": "InvalidFleetId.NotFound", "vol-1": "InvalidVolume.NotFound", "x": "InvalidID",
		} {
			wantCode(t, w.CreateTags([]string{id}, map[string]string{"a": ""}), code)
		}
	})
}
