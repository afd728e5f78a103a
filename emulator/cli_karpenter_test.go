//go:build e2e

package emulator_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/eks"
)

// prepareKarpenter adds a cluster, which no API call creates.
func prepareKarpenter(_ *testing.T, s *emulator.States) map[string]string {
	s.EKS.SetCluster(eks.Cluster{Name: "prod", Version: "1.36", Endpoint: "https://127.0.0.1:6443", CA: []byte("PEM")})
	return nil
}

// Karpenter's calls to services that have no other user here.
var karpenterCLICases = []cliCase{
	{name: "describe a cluster", args: []string{"eks", "describe-cluster", "--name", "prod"},
		want: map[string]string{"cluster.status": "ACTIVE", "cluster.kubernetesNetworkConfig.serviceIpv4Cidr": "10.100.0.0/16",
			"cluster.certificateAuthority.data": "UEVN", "cluster.createdAt": "*"}},
	{name: "describe none", args: []string{"eks", "describe-cluster", "--name", "none"}, wantErr: "ResourceNotFoundException"},
	{name: "list clusters", args: []string{"eks", "list-clusters"}, want: map[string]string{"clusters.0": "prod", "clusters.1": ""}},
	{name: "find an image", args: []string{"ssm", "get-parameter", "--name", "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"},
		want: map[string]string{"Parameter.Value": "*", "Parameter.Type": "String", "Parameter.LastModifiedDate": "*"}},
	{name: "find no image", args: []string{"ssm", "get-parameter", "--name", "/none"}, wantErr: "ParameterNotFound"},
	{name: "make a role", args: []string{"iam", "create-role", "--role-name", "nodes", "--assume-role-policy-document", `{"Version":"2012-10-17"}`},
		want: map[string]string{"Role.Arn": "arn:aws:iam::123456789012:role/nodes", "Role.AssumeRolePolicyDocument.Version": "2012-10-17"}},
	{name: "make an instance profile", args: []string{"iam", "create-instance-profile", "--instance-profile-name", "p", "--path", "/k/", "--tags", "Key=team,Value=a"},
		want: map[string]string{"InstanceProfile.Arn": "arn:aws:iam::123456789012:instance-profile/k/p", "InstanceProfile.Tags.0.Value": "a"}},
	{name: "put the role into it", args: []string{"iam", "add-role-to-instance-profile", "--instance-profile-name", "p", "--role-name", "nodes"}},
	{name: "list it", args: []string{"iam", "list-instance-profiles", "--path-prefix", "/k/"},
		want: map[string]string{"InstanceProfiles.0.Roles.0.RoleName": "nodes", "InstanceProfiles.1": ""}},
	{name: "delete it too early", args: []string{"iam", "delete-instance-profile", "--instance-profile-name", "p"}, wantErr: "DeleteConflict"},
	{name: "get none", args: []string{"iam", "get-instance-profile", "--instance-profile-name", "none"}, wantErr: "NoSuchEntity"},
	{name: "look up a price", args: []string{"pricing", "get-products", "--service-code", "AmazonEC2",
		"--filters", "Type=TERM_MATCH,Field=instanceType,Value=m5.large"}, want: map[string]string{"PriceList.0": "*", "PriceList.1": ""}},
}
