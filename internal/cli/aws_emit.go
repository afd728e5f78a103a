package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
)

// The formats of templates.
const (
	formatCloudFormation = "cloudformation"
	formatTerraform      = "terraform"
	formatJSON           = "json"
)

// lateHooksWarning warns, for each format, that the template's hooks come too late for
// new groups.
var lateHooksWarning = map[string]string{
	formatCloudFormation: "The hooks are for existing groups. A group that a template creates must declare them itself, in LifecycleHookSpecificationList: " +
		"otherwise it launches instances and fills its warm pool before the hooks exist.",
	formatTerraform: "The hooks are for existing groups. A warm pool is part of aws_autoscaling_group, so it exists before any aws_autoscaling_lifecycle_hook: " +
		"declare the same hooks as initial_lifecycle_hook in a group that Terraform creates (they are in locals); keep the resources.",
	formatJSON: "The hooks are for existing groups: create a new group together with them, in LifecycleHookSpecificationList.",
}

func newAWSEmit(s *session) *cobra.Command {
	var f awsFlags
	var format string
	var role emit.Role
	cmd := &cobra.Command{
		Use:   "emit --cluster NAME",
		Short: "Print the AWS resources as a template for another tool",
		Long: `Print the AWS resources as a template for another tool. The command needs no account:
without --account and --region, the tool fills them in.

The template tags its resources as that tool's. lifeboat aws plan checks them and
leaves changes to the tool. With --identity the template also creates the
controller's IAM role.`,
		Example: `  lifeboat aws emit --cluster prod > lifeboat.yaml
  aws cloudformation deploy --stack-name lifeboat-prod --template-file lifeboat.yaml

  lifeboat aws emit --cluster prod --format terraform > lifeboat-prod.tf.json

  # One topic with three rules for the account, and what each cluster adds
  lifeboat aws emit --shared-topic lifeboat-shared > lifeboat-shared.yaml
  lifeboat aws emit --cluster prod --shared-topic lifeboat-shared > lifeboat-prod.yaml

  # Queue, rules, role and chart as one Terraform module
  lifeboat aws emit --cluster prod --format terraform --identity pod-identity \
    --chart oci://registry.example/charts/lifeboat > lifeboat-prod.tf.json

  # Also create the controller's role, and associate it with its service account
  lifeboat aws emit --cluster prod --identity pod-identity > lifeboat.yaml
  aws cloudformation deploy --stack-name lifeboat-prod --template-file lifeboat.yaml --capabilities CAPABILITY_IAM`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given(cmd)
			if err := f.checkEmit(role); err != nil {
				return err
			}
			if err := checkRole(role, format); err != nil {
				return err
			}
			text, err := s.template(cmd.Context(), f, format, role)
			if err != nil {
				return err
			}
			s.out.Printf("%s", text)
			return nil
		},
	}
	f.addGroups(cmd)
	f.addFewRules(cmd)
	f.addSenders(cmd)
	f.addTopic(cmd, "without --cluster, emit prints the topic and its rules; with it, what the cluster adds")
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "name of the cluster; all resource names contain it")
	flags.StringVar(&f.account, "account", "", "AWS account (default: the account where the template is applied)")
	flags.StringVar(&f.region, "region", "", "AWS region (default: the region where the template is applied)")
	flags.StringVar(&format, "format", formatCloudFormation, "template format: cloudformation (YAML, or JSON with -o json), terraform (JSON syntax), or json (for your own tools)")
	addRole(cmd, &role)
	return cmd
}

// addRole adds the flags about the controller and its role.
func addRole(cmd *cobra.Command, role *emit.Role) {
	flags := cmd.Flags()
	flags.StringVar(&role.Identity, "identity", "", "also create the controller's IAM role, for this way to get credentials: pod-identity (EKS Pod Identity) or irsa (the OIDC provider of the cluster, with --oidc-issuer)")
	flags.StringVar(&role.Issuer, "oidc-issuer", "", "OIDC issuer of the cluster, for --identity irsa (aws eks describe-cluster --query cluster.identity.oidc.issuer)")
	flags.StringVar(&role.Chart, "chart", "", "with --identity and --format terraform: also install Lifeboat's chart, a path or an oci:// reference")
	flags.BoolVar(&role.Canary, "canary", false, "with --identity: add the permissions to send probes through the rules and the queue")
	flags.BoolVar(&role.EventHistory, "cloudtrail", false, "with --identity: add the permission to read CloudTrail's event history")
	flags.BoolVar(&role.LoadBalancers, "load-balancers", false, "with --identity: add the permission to read whether load balancers have deregistered an instance, for waitForDeregistration")
	flags.StringVar(&role.KarpenterQueue, "karpenter-queue", "", "with --identity: add the permissions to forward notices to Karpenter's own queue of this name")
}

// checkRole checks the flags about the controller's role.
func checkRole(r emit.Role, format string) error {
	switch {
	case r.Identity == "" && r != (emit.Role{}):
		return usageErrorf("--oidc-issuer, --canary, --cloudtrail, --load-balancers, --karpenter-queue and --chart are about the controller and its role: add --identity pod-identity or --identity irsa")
	case r.Chart != "" && format != formatTerraform:
		return usageErrorf("--chart writes a helm_release for Terraform: add --format terraform, or install the chart with Helm")
	case r.Identity == "":
		return nil
	case r.Identity != emit.PodIdentity && r.Identity != emit.IRSA:
		return usageErrorf("unknown identity %q: write --identity pod-identity or --identity irsa", r.Identity)
	case r.Identity == emit.IRSA && r.Issuer == "":
		return usageErrorf("--identity irsa needs the cluster's OIDC issuer: add --oidc-issuer URL (aws eks describe-cluster --name NAME --query cluster.identity.oidc.issuer)")
	case r.Identity == emit.PodIdentity && r.Issuer != "":
		return usageErrorf("EKS Pod Identity needs no OIDC issuer: remove --oidc-issuer, or write --identity irsa")
	case format == formatJSON:
		return usageErrorf("--identity needs the format cloudformation or terraform: for other tools, lifeboat aws iam -o json prints the role's policies")
	}
	return nil
}

// checkEmit checks the flags. Without a cluster, the topic is all that is asked for.
func (f *awsFlags) checkEmit(r emit.Role) error {
	if f.cluster != "" || f.topic == "" {
		return f.check()
	}
	if f.groups != "" || len(f.senders) > 0 || r != (emit.Role{}) {
		return usageErrorf("without --cluster, --shared-topic prints only the topic and its rules: add --cluster NAME, or remove --groups, --sender and --identity")
	}
	other := *f
	other.cluster = f.topic
	return other.check()
}

// sharedTemplate returns the template of a topic that clusters share.
func (s *session) sharedTemplate(place emit.Place, format string) ([]byte, error) {
	switch format {
	case formatCloudFormation:
		template, err := emit.SharedCloudFormation(place)
		if err != nil || s.isJSON() {
			return template, err
		}
		return emit.YAML(template)
	case formatTerraform:
		return emit.SharedTerraform(place)
	}
	return nil, usageErrorf("the format of a shared topic is cloudformation or terraform: change --format, or add --cluster NAME")
}

func (s *session) template(ctx context.Context, f awsFlags, format string, role emit.Role) ([]byte, error) {
	groups, err := s.selectedGroups(ctx, f)
	if err != nil {
		return nil, err
	}
	place := emit.Place{Topic: f.topic, Account: f.account, Region: f.region, Groups: templateGroups(groups), Senders: f.senders, FewRules: f.fewRules, Role: role}
	if len(groups) > 0 {
		s.err.Printf("%s\n", lateHooksWarning[format])
	}
	if f.cluster == "" {
		return s.sharedTemplate(place, format)
	}
	switch format {
	case formatCloudFormation:
		template, err := emit.CloudFormation(f.cluster, place)
		if err != nil || s.isJSON() {
			return template, err
		}
		return emit.YAML(template)
	case formatTerraform:
		return emit.Terraform(f.cluster, place)
	case formatJSON:
		return emit.JSON(f.cluster, place)
	}
	return nil, usageErrorf("unknown format %q: write --format cloudformation, terraform or json", format)
}
