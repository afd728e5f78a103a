package emit

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// The ways in which the controller's pods get the credentials of its role.
const (
	// PodIdentity is EKS Pod Identity. The template also associates the role with the service
	// account, so nothing is left to configure in the cluster.
	PodIdentity = "pod-identity"
	// IRSA is the OIDC provider of the cluster (IAM roles for service accounts). The service
	// account needs the annotation eks.amazonaws.com/role-arn.
	IRSA = "irsa"
)

// Role is the controller's IAM role. The zero value is none.
type Role struct {
	// Identity is PodIdentity or IRSA.
	Identity string
	// Issuer is the OIDC issuer of the cluster, for IRSA.
	Issuer string
	// Canary, EventHistory, LoadBalancers and KarpenterQueue add the permissions for probes, for
	// CloudTrail's event history, for the health of targets, and for Karpenter's queue.
	Canary         bool
	EventHistory   bool
	LoadBalancers  bool
	KarpenterQueue string
	// Chart is the chart that Terraform installs with the role: a path or an oci:// reference; empty: none.
	Chart string
}

// documents returns the trust policy and the permissions of the role.
func (r Role) documents(w awssetup.Wiring) (trust, permissions any, err error) {
	document, policy := iam.PodIdentity(w), iam.Controller(w, r.Canary)
	if r.Identity == IRSA {
		document = iam.WebIdentity(w, r.Issuer)
	}
	if r.EventHistory {
		policy = iam.ReadEventHistory(policy, w)
	}
	if r.LoadBalancers {
		policy = iam.ReadTargetHealth(policy, w)
	}
	if r.KarpenterQueue != "" {
		policy = iam.FeedKarpenter(policy, w, r.KarpenterQueue)
	}
	if trust, err = plain(document); err != nil {
		return nil, nil, err
	}
	permissions, err = plain(policy)
	return trust, permissions, err
}

// plain returns a document as decoded JSON.
func plain(d iam.Document) (any, error) {
	text, err := render(d)
	if err != nil {
		return nil, err
	}
	return valueOf(string(text))
}

const cfnRole = "ControllerRole"

// cfnAddRole adds the role to the resources and outputs of a template. CloudFormation generates
// its name, so that CAPABILITY_IAM is enough to create it.
func (r Role) cfnAddRole(w awssetup.Wiring, resources, outputs object, tags any, text func(string) any) error {
	trust, permissions, err := r.documents(w)
	if err != nil {
		return err
	}
	arn := object{"Fn::GetAtt": []string{cfnRole, "Arn"}}
	resources[cfnRole] = object{"Type": "AWS::IAM::Role", "Properties": object{
		"Description":              "lifeboatd controller in cluster " + w.Cluster,
		"AssumeRolePolicyDocument": replace(trust, text), "Tags": tags,
		"Policies": []any{object{"PolicyName": "lifeboat", "PolicyDocument": replace(permissions, text)}},
	}}
	if r.Identity == PodIdentity {
		resources["PodIdentityAssociation"] = object{"Type": "AWS::EKS::PodIdentityAssociation", "Properties": object{
			"ClusterName": w.Cluster, "Namespace": iam.Namespace, "ServiceAccount": iam.ServiceAccount, "RoleArn": arn, "Tags": tags,
		}}
	}
	outputs["ControllerRoleARN"] = object{"Description": "for the annotation eks.amazonaws.com/role-arn of the service account, with IRSA", "Value": arn}
	return nil
}

// longestPrefix is the most characters of name_prefix (provider hashicorp/aws, aws_iam_role).
const longestPrefix = 38

// tfAddRole adds the role to the resources and outputs of a file.
func (t tf) tfAddRole(r Role, resources, outputs object) error {
	trust, permissions, err := r.documents(t.w)
	if err != nil {
		return err
	}
	trustText, err := t.text(trust)
	if err != nil {
		return err
	}
	policyText, err := t.text(permissions)
	if err != nil {
		return err
	}
	prefix := t.w.Queue.Name + "-"
	arn := fmt.Sprintf("${aws_iam_role.%s.arn}", t.label)
	resources["aws_iam_role"] = object{t.label: object{
		"name_prefix": prefix[:min(len(prefix), longestPrefix)], "description": "lifeboatd controller in cluster " + t.w.Cluster,
		"assume_role_policy": trustText, "tags": t.tags,
	}}
	resources["aws_iam_role_policy"] = object{t.label: object{
		"name": "lifeboat", "role": fmt.Sprintf("${aws_iam_role.%s.id}", t.label), "policy": policyText,
	}}
	if r.Identity == PodIdentity {
		resources["aws_eks_pod_identity_association"] = object{t.label: object{
			"cluster_name": t.w.Cluster, "namespace": iam.Namespace, "service_account": iam.ServiceAccount, "role_arn": arn, "tags": t.tags,
		}}
	}
	outputs[t.label+"_controller_role_arn"] = object{"description": "for the annotation eks.amazonaws.com/role-arn of the service account, with IRSA", "value": arn}
	return nil
}
