package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// The values of --role.
const (
	roleController = "controller"
	roleAgent      = "agent"
	roleSetup      = "setup"
	roleBoot       = "boot"
	roleFIS        = "fis"
)

type iamFlags struct {
	awsFlags

	role, issuer string
	canary       bool
	// eventHistory adds the permission to read CloudTrail's event history.
	eventHistory bool
	// loadBalancers adds the permission to read the health of targets.
	loadBalancers bool
	// create creates the role of drills.
	create bool
	// karpenterQueue is the name of Karpenter's own interruption queue, to
	// which Lifeboat forwards notices. Empty means none.
	karpenterQueue string
	// manageGroups adds the permissions to change groups. nodeRole is the role
	// of the instances in their launch templates.
	manageGroups bool
	groupPrefix  string
	nodeRole     string
	// tagKeys are the keys of spec.tags in NodeGroups.
	tagKeys []string
}

func newAWSIAM(s *session) *cobra.Command {
	var f iamFlags
	cmd := &cobra.Command{
		Use:   "iam --cluster NAME",
		Short: "Print the required IAM policies and trust policies",
		Long: `Print the smallest IAM policy for a part of Lifeboat, and the trust policies of its
role, for EKS Pod Identity and for IRSA. With --account and --region the command
needs no AWS credentials.

--role fis is the role that AWS Fault Injection Service assumes when lifeboat
interrupt reclaims spot nodes. It can interrupt only nodes of the cluster. With
--create the command also creates that role, or corrects it, and prints its ARN.`,
		Example: `  lifeboat aws iam --cluster prod

  # Write only the policy to a file
  lifeboat aws iam --cluster prod -o json | jq .policy > policy.json

  # Print the policy of nodes whose agent answers launch hooks itself
  lifeboat aws iam --cluster prod --role boot --groups nodes-a,nodes-b

  # Create the role for drills with FIS
  lifeboat aws iam --cluster prod --role fis --create

  # Print the policy of the person or pipeline that runs lifeboat aws
  lifeboat aws iam --cluster prod --role setup --account 210987654321 --region eu-west-1`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given(cmd)
			if err := f.check(); err != nil {
				return err
			}
			if f.create && f.role != roleFIS {
				return usageErrorf("--create creates only the role of drills: add --role fis, or remove --create")
			}
			return s.awsIAM(cmd.Context(), f)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.account, "account", "", "AWS account of the cluster (default: the account of the credentials)")
	flags.StringVar(&f.role, "role", roleController, "part of Lifeboat: controller, agent, boot, fis or setup. boot is for nodes whose agent answers launch hooks itself; fis is for drills; setup is for the person or pipeline that runs lifeboat aws")
	flags.BoolVar(&f.create, "create", false, "with --role fis: create the role, or correct it")
	flags.BoolVar(&f.yes, "yes", false, "with --create: do not ask for confirmation")
	flags.StringVar(&f.issuer, "oidc-issuer", "", "OIDC issuer of the cluster, for IRSA (aws eks describe-cluster --query cluster.identity.oidc.issuer)")
	flags.BoolVar(&f.canary, "canary", false, "add the controller's permissions to send probes through the rules and the queue")
	flags.BoolVar(&f.eventHistory, "cloudtrail", false, "add the controller's permission to read CloudTrail's event history")
	flags.BoolVar(&f.loadBalancers, "load-balancers", false, "add the controller's permission to read whether load balancers have deregistered an instance, for waitForDeregistration")
	flags.StringVar(&f.karpenterQueue, "karpenter-queue", "", "add the controller's permissions to forward notices to Karpenter's own queue of this name")
	f.addTopic(cmd, "with --role setup: adds the permissions for it")
	f.addGroups(cmd)
	flags.Lookup("groups").Usage = "limit the policy to these Auto Scaling groups: comma-separated names, or nodegroups for the groups of the cluster's NodeGroups (default: groups with a tag of the cluster)"
	flags.BoolVar(&f.manageGroups, "manage-groups", false, "add the controller's permissions to create and change groups, hooks and warm pools, for NodeGroups with management Hooks or All")
	flags.StringVar(&f.groupPrefix, "group-prefix", "", "with --manage-groups: limit the policy to Auto Scaling groups whose names begin with this text, besides those of --groups")
	flags.StringVar(&f.nodeRole, "node-role", "", "role of the nodes' instances, for --manage-groups: the controller needs iam:PassRole for it")
	flags.StringSliceVar(&f.tagKeys, "tag-keys", nil, "keys of spec.tags in NodeGroups, for --manage-groups: the policy allows to tag groups with no other keys, besides Lifeboat's own and the cluster's")
	return cmd
}

// permissions is the output of `aws iam`.
type permissions struct {
	Role string `json:"role"`
	// Note explains the policy.
	Note string `json:"note"`
	// Policy is nil if no permission is needed.
	Policy *iam.Document `json:"policy"`
	Trust  *trust        `json:"trust,omitempty"`
}

// trust holds the trust policies of a role, one for each mechanism.
type trust struct {
	PodIdentity iam.Document `json:"podIdentity"`
	WebIdentity iam.Document `json:"webIdentity"`
}

// extendsController reports whether a flag adds a permission of the controller.
func (f iamFlags) extendsController() bool {
	return f.canary || f.eventHistory || f.loadBalancers || f.karpenterQueue != ""
}

func (s *session) awsIAM(ctx context.Context, f iamFlags) error {
	var needed permissions
	if f.role != roleController && f.extendsController() {
		return usageErrorf("--canary, --cloudtrail, --load-balancers and --karpenter-queue are about the controller: write --role controller, or remove them")
	}
	switch f.role {
	case roleAgent:
		needed = permissions{Role: roleAgent, Note: "lifeboatd agent needs no IAM permission and no role: it reads the metadata of its own instance, " +
			"which needs none. The pod must be able to reach it: without hostNetwork, set the instance's metadata hop limit to 2."}
	case roleFIS:
		return s.drillRole(ctx, f)
	case roleController, roleSetup, roleBoot:
		w, err := s.setupAt(ctx, f.awsFlags)
		if err != nil {
			return err
		}
		if w.Groups, err = s.groupNames(ctx, f); err != nil {
			return err
		}
		if f.role == roleController && len(w.Groups) > 0 {
			s.err.Printf("%s\n", tagWarning(w))
		}
		w.Topic = f.topic
		needed = needs(w, f)
	default:
		return usageErrorf("unknown role %q: write --role controller, agent, boot, fis or setup", f.role)
	}
	if s.isJSON() {
		return s.writeJSON(needed)
	}
	return s.showPermissions(needed)
}

// groupNames returns the names of the groups that the policy is limited to; one of them may
// end in *.
func (s *session) groupNames(ctx context.Context, f iamFlags) ([]string, error) {
	if len(f.tagKeys) > 0 && !f.manageGroups {
		return nil, usageErrorf("--tag-keys is only for --manage-groups: add --manage-groups or remove --tag-keys")
	}
	if strings.ContainsAny(f.groupPrefix, "*?") || f.groupPrefix != "" && !f.manageGroups {
		return nil, usageErrorf("--group-prefix is plain text, and only for --manage-groups: write --manage-groups --group-prefix prod-")
	}
	groups, err := s.selectedGroups(ctx, f.awsFlags)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.Group)
	}
	if f.groupPrefix != "" {
		names = append(names, f.groupPrefix+"*")
	}
	if f.manageGroups && len(names) == 0 {
		return nil, usageErrorf("--manage-groups needs the names of the groups, because a policy without names could take over any group of the account: add --groups NAME,NAME or --group-prefix TEXT")
	}
	return names, nil
}

// setupAt returns the resources for the account and region of the flags or of the
// credentials.
func (s *session) setupAt(ctx context.Context, f awsFlags) (awssetup.Wiring, error) {
	if f.account != "" && f.region != "" {
		return awssetup.Desired(f.cluster, f.account, f.region), nil
	}
	found, err := s.connectSetup(ctx, f)
	if err != nil {
		return awssetup.Wiring{}, fmt.Errorf("reading account and region (--account and --region set them): %w", err)
	}
	if f.account != "" {
		return awssetup.Desired(f.cluster, f.account, found.wanted.Region), nil
	}
	return found.wanted, nil
}

func needs(w awssetup.Wiring, f iamFlags) permissions {
	switch f.role {
	case roleSetup:
		policy := iam.Setup(w)
		return permissions{Role: roleSetup, Policy: &policy, Note: "What lifeboat aws plan, apply and destroy need for cluster " + w.Cluster + "."}
	case roleBoot:
		policy := iam.Boot(w)
		return permissions{Role: roleBoot, Policy: &policy, Note: bootNote(w)}
	}
	policy := iam.Controller(w, f.canary)
	if f.eventHistory {
		policy = iam.ReadEventHistory(policy, w)
	}
	if f.loadBalancers {
		policy = iam.ReadTargetHealth(policy, w)
	}
	if f.karpenterQueue != "" {
		policy = iam.FeedKarpenter(policy, w, f.karpenterQueue)
	}
	also := ""
	if f.manageGroups {
		policy = iam.ManageGroups(policy, w, f.nodeRole, f.tagKeys...)
		also = " It creates and changes " + groupsOf(w) + " as NodeGroups declare them, and passes the role of their instances to EC2 (replace " +
			iam.UnknownNodeRole + " by its name, or set --node-role)."
	}
	return permissions{
		Role: roleController, Policy: &policy,
		Note: "What lifeboatd controller needs in cluster " + w.Cluster + ". It reads one queue, terminates instances of the cluster " +
			"if a policy says so, answers lifecycle hooks of " + groupsOf(w) + ", and detaches instances from them to get a replacement. " +
			"It changes nothing else." + also,
		Trust: &trust{
			PodIdentity: iam.PodIdentity(w),
			WebIdentity: iam.WebIdentity(w, f.issuer),
		},
	}
}

// tagWarning warns that a policy for named groups still needs tags on their
// instances: IAM has no condition for the group of an instance (Service
// Authorization Reference, "Amazon EC2").
func tagWarning(w awssetup.Wiring) string {
	return "The policy allows to detach instances from these groups by the groups' names (autoscaling:DetachInstances), but to terminate instances only by their own tags: " +
		"tag the instances with kubernetes.io/cluster/" + w.Cluster + "=owned or eks:cluster-name=" + w.Cluster + ". Lifeboat can detach an instance with neither tag, but " +
		"cannot terminate it, so it continues to run outside of any group. Alternatively remove both permissions (docs/guides/aws.md)."
}

// groupsOf describes the groups of a policy.
func groupsOf(w awssetup.Wiring) string {
	if len(w.Groups) > 0 {
		return "the Auto Scaling groups " + strings.Join(w.Groups, ", ")
	}
	return "Auto Scaling groups that have the tag kubernetes.io/cluster/" + w.Cluster + "=owned or eks:cluster-name=" + w.Cluster
}

// bootNote explains the policy of a node. AWS documents no condition key for
// the instance of a lifecycle action (Service Authorization Reference,
// "Condition keys for Amazon EC2 Auto Scaling").
func bootNote(w awssetup.Wiring) string {
	return "What lifeboatd agent boot needs in cluster " + w.Cluster + " to answer the launch hook of its own instance, as part of the role of the nodes' instances.\n\n" +
		"The agent also works without it: the controller then answers when the node is Ready. Attach it only if launches must continue while the controller is down.\n\n" +
		"IAM cannot limit it to the instance that sends the request: there is no condition key for the instance of a lifecycle action. Any process with these credentials, " +
		"such as a pod that reaches instance metadata, can answer the hooks of every instance of " + groupsOf(w) + ", also with ABANDON, which terminates them. " +
		"The policy has the conditions that IAM offers: these groups, and credentials of an instance (ec2:SourceInstanceARN exists). " +
		"Block pods from instance metadata with hop limit 1 and required tokens (lifeboat doctor checks this)."
}

func (s *session) showPermissions(p permissions) error {
	s.out.Printf("%s\n", p.Note)
	if p.Policy == nil {
		return nil
	}
	if err := s.showDocument("Policy", "", *p.Policy); err != nil {
		return err
	}
	if p.Role == roleBoot {
		s.out.Printf("\nAttach it to the role of the nodes' instances.\n")
	}
	if p.Trust == nil {
		return nil
	}
	if err := s.showDocument("Trust, with EKS Pod Identity", "then: aws eks create-pod-identity-association --cluster-name … --namespace "+
		iam.Namespace+" --service-account "+iam.ServiceAccount+" --role-arn …", p.Trust.PodIdentity); err != nil {
		return err
	}
	if err := s.showDocument("Trust, with IRSA", "replace "+iam.UnknownIssuer+" by the cluster's issuer, or set --oidc-issuer; then annotate the "+
		"service account with eks.amazonaws.com/role-arn", p.Trust.WebIdentity); err != nil {
		return err
	}
	s.out.Printf("\n%s\nAttach the policy to the role of the instances that the controller runs on; no trust policy is needed.\n",
		s.out.Paint(terminal.Bold, "With neither (instance roles)"))
	return nil
}

func (s *session) showDocument(title, how string, d iam.Document) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the policy: %w", err)
	}
	s.out.Printf("\n%s\n", s.out.Paint(terminal.Bold, title))
	if how != "" {
		s.out.Printf("%s\n", how)
	}
	s.out.Printf("%s\n", text)
	return nil
}
