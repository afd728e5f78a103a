package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/iam"
)

// Roles that permissions are printed for.
const (
	roleController = "controller"
	roleAgent      = "agent"
	roleWire       = "wire"
	roleBoot       = "boot"
)

type iamFlags struct {
	wireFlags

	role, issuer string
	canary       bool
	// karpenterQueue is the name of the queue that Karpenter takes its
	// interruptions from, and Lifeboat feeds; empty: none.
	karpenterQueue string
	// manageGroups adds what NodeGroups need that change groups; nodeRole is the
	// role that the instances of their launch templates have.
	manageGroups bool
	nodeRole     string
}

func newWireIAM(s *session) *cobra.Command {
	var f iamFlags
	cmd := &cobra.Command{
		Use:   "iam --cluster NAME",
		Short: "Print the IAM policies that are needed, and who may take the role on",
		Long: `Print the least that a part of Lifeboat needs of IAM, and trust policies for the
role, for EKS Pod Identity and for IRSA. With --account and --region it needs no
AWS credentials.`,
		Example: `  lifeboat wire iam --cluster prod

  # Only the policy, for a file
  lifeboat wire iam --cluster prod -o json | jq .policy > policy.json

  # What nodes need, where their agent is to answer launch hooks itself
  lifeboat wire iam --cluster prod --role boot --groups nodes-a,nodes-b

  # What the person or pipeline needs that runs lifeboat wire
  lifeboat wire iam --cluster prod --role wire --account 210987654321 --region eu-west-1`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.wireIAM(cmd.Context(), f)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.account, "account", "", "AWS account of the cluster (default: that of the credentials)")
	flags.StringVar(&f.role, "role", roleController, "controller, agent, boot (nodes whose agent answers launch hooks itself), or wire: who runs lifeboat wire")
	flags.StringVar(&f.issuer, "oidc-issuer", "", "OIDC issuer of the cluster, for IRSA (aws eks describe-cluster --query cluster.identity.oidc.issuer)")
	flags.BoolVar(&f.canary, "canary", false, "add what the controller needs to send probes through the wiring")
	flags.StringVar(&f.karpenterQueue, "karpenter-queue", "", "add what the controller needs to feed Karpenter's own queue of this name")
	f.addGroups(cmd)
	flags.Lookup("groups").Usage = "Auto Scaling groups to limit the policy to: names with commas between, or nodegroups, for those that NodeGroups of the cluster name (default: groups with a tag of the cluster)"
	flags.BoolVar(&f.manageGroups, "manage-groups", false, "add what the controller needs to make and change groups, their hooks and warm pools: NodeGroups with the management Hooks or All")
	flags.StringVar(&f.nodeRole, "node-role", "", "role of the nodes' instances, for --manage-groups: the controller has to be allowed to pass it on")
	return cmd
}

// permissions are what a role needs.
type permissions struct {
	Role string `json:"role"`
	// Note says in words what the policy is about.
	Note string `json:"note"`
	// Policy is nil where nothing is needed.
	Policy *iam.Document `json:"policy"`
	Trust  *trust        `json:"trust,omitempty"`
}

// trust says who may take a role on, one document for each way.
type trust struct {
	PodIdentity iam.Document `json:"podIdentity"`
	WebIdentity iam.Document `json:"webIdentity"`
}

func (s *session) wireIAM(ctx context.Context, f iamFlags) error {
	var needed permissions
	switch f.role {
	case roleAgent:
		needed = permissions{Role: roleAgent, Note: "lifeboatd agent needs no IAM permission and no role: it reads the metadata of its own instance, " +
			"which asks for none. It must reach it: from a pod without hostNetwork the instance needs the metadata hop limit 2."}
	case roleController, roleWire, roleBoot:
		w, err := s.wiringAt(ctx, f.wireFlags)
		if err != nil {
			return err
		}
		groups, err := s.groupsMeant(ctx, f.wireFlags)
		if err != nil {
			return err
		}
		for _, g := range groups {
			w.Groups = append(w.Groups, g.Group)
		}
		if f.role == roleController && len(w.Groups) > 0 {
			s.err.Printf("%s\n", tagThem(w))
		}
		needed = needs(w, f)
	default:
		return usageErrorf("unknown role %q: write --role controller, agent, boot or wire", f.role)
	}
	if s.isJSON() {
		return s.writeJSON(needed)
	}
	return s.showPermissions(needed)
}

// wiringAt is the wiring at the place that the flags or the credentials name.
func (s *session) wiringAt(ctx context.Context, f wireFlags) (wiring.Wiring, error) {
	if f.account != "" && f.region != "" {
		return wiring.Desired(f.cluster, f.account, f.region), nil
	}
	found, err := s.connectWiring(ctx, f)
	if err != nil {
		return wiring.Wiring{}, fmt.Errorf("finding out account and region (or give --account and --region): %w", err)
	}
	if f.account != "" {
		return wiring.Desired(f.cluster, f.account, found.wanted.Region), nil
	}
	return found.wanted, nil
}

func needs(w wiring.Wiring, f iamFlags) permissions {
	switch f.role {
	case roleWire:
		policy := iam.Wire(w)
		return permissions{Role: roleWire, Policy: &policy, Note: "What lifeboat wire plan, apply and destroy need for cluster " + w.Cluster + "."}
	case roleBoot:
		policy := iam.Boot(w)
		return permissions{Role: roleBoot, Policy: &policy, Note: bootNote(w)}
	}
	policy := iam.Controller(w, f.canary)
	if f.karpenterQueue != "" {
		policy = iam.FeedKarpenter(policy, w, f.karpenterQueue)
	}
	also := ""
	if f.manageGroups {
		policy = iam.ManageGroups(policy, w, f.nodeRole)
		also = " It makes and changes " + groupsOf(w) + " as NodeGroups declare them, and passes the role of their instances on (put its name in place of " +
			iam.UnknownNodeRole + ", or give --node-role)."
	}
	return permissions{
		Role: roleController, Policy: &policy,
		Note: "What lifeboatd controller needs in cluster " + w.Cluster + ". It reads one queue, terminates instances of the cluster " +
			"where a policy says so, and of " + groupsOf(w) + " it answers lifecycle hooks and takes instances out for which the group brings up others. " +
			"Nothing else is changed." + also,
		Trust: &trust{
			PodIdentity: iam.PodIdentity(w),
			WebIdentity: iam.WebIdentity(w, f.issuer),
		},
	}
}

// tagThem says what a policy that names groups still needs of their instances: IAM knows
// no group of an instance (Service Authorization Reference, "Amazon EC2").
func tagThem(w wiring.Wiring) string {
	return "The policy takes instances out of these groups by the groups' names (autoscaling:DetachInstances), and terminates them by their own tag: " +
		"see that they have kubernetes.io/cluster/" + w.Cluster + "=owned or eks:cluster-name=" + w.Cluster + ". One that has neither is taken out, " +
		"cannot be terminated, and runs on in no group. Or leave both rights out (docs/guides/aws.md)."
}

// groupsOf says in words which groups a policy reaches.
func groupsOf(w wiring.Wiring) string {
	if len(w.Groups) > 0 {
		return "the Auto Scaling groups " + strings.Join(w.Groups, ", ")
	}
	return "Auto Scaling groups that have the tag kubernetes.io/cluster/" + w.Cluster + "=owned or eks:cluster-name=" + w.Cluster
}

// bootNote says what the policy of a node comes to. AWS documents no condition key
// for the instance that a lifecycle action is about (Service Authorization Reference,
// "Condition keys for Amazon EC2 Auto Scaling").
func bootNote(w wiring.Wiring) string {
	return "What lifeboatd agent boot needs in cluster " + w.Cluster + " to answer the launch hook of its own instance, as part of the role of the nodes' instances.\n\n" +
		"Without it the agent works all the same, and the controller answers as soon as the node is Ready: leave it away unless launches have to go on while the controller is away.\n\n" +
		"IAM cannot limit it to the instance that asks: there is no condition key for the instance that an action is about. Whoever has these credentials, " +
		"such as a pod that reaches instance metadata, can answer the hooks of every instance of " + groupsOf(w) + ", also with ABANDON, which ends them. " +
		"The policy asks for what can be asked for: these groups, and credentials that are an instance's (ec2:SourceInstanceARN is there). " +
		"Keep pods from metadata: hop limit 1 and tokens required (lifeboat doctor looks)."
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
	if err := s.showDocument("Trust, with IRSA", "put the cluster's issuer in place of "+iam.UnknownIssuer+", or give --oidc-issuer; then annotate the "+
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
