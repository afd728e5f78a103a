package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/wiring/emit"
)

// Formats of templates.
const (
	formatCloudFormation = "cloudformation"
	formatTerraform      = "terraform"
	formatJSON           = "json"
)

// hooksLate says, for each format, what hooks of a template come too late for.
var hooksLate = map[string]string{
	formatCloudFormation: "The hooks are for groups that are there. A group that is made in a template has to name them itself, in LifecycleHookSpecificationList: " +
		"otherwise it launches, and fills its warm pool, before they are there.",
	formatTerraform: "The hooks are for groups that are there. A warm pool is part of aws_autoscaling_group, and so is there before any aws_autoscaling_lifecycle_hook: " +
		"give a group that Terraform makes the same hooks as initial_lifecycle_hook (they are in locals); the resources may stay.",
	formatJSON: "The hooks are for groups that are there: one that is created has to be created with them, in LifecycleHookSpecificationList.",
}

func newWireEmit(s *session) *cobra.Command {
	var f wireFlags
	var format string
	cmd := &cobra.Command{
		Use:   "emit --cluster NAME",
		Short: "Print the AWS wiring as a template for another tool",
		Long: `Print the AWS wiring as a template for another tool. It needs no account: what
--account and --region do not say is left to the tool to fill in.

What a template makes is tagged as that tool's: lifeboat wire plan checks it and
leaves changing it to the tool.`,
		Example: `  lifeboat wire emit --cluster prod > lifeboat.yaml
  aws cloudformation deploy --stack-name lifeboat-prod --template-file lifeboat.yaml

  lifeboat wire emit --cluster prod --format terraform > lifeboat-prod.tf.json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			text, err := s.template(cmd.Context(), f, format)
			if err != nil {
				return err
			}
			s.out.Printf("%s", text)
			return nil
		},
	}
	f.addGroups(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "name of the cluster; it becomes part of all names")
	flags.StringVar(&f.account, "account", "", "AWS account (default: the one that the template is used in)")
	flags.StringVar(&f.region, "region", "", "AWS region (default: the one that the template is used in)")
	flags.StringVar(&format, "format", formatCloudFormation, "cloudformation (YAML, or JSON with -o json), terraform (JSON syntax), or json (for tools of your own)")
	return cmd
}

func (s *session) template(ctx context.Context, f wireFlags, format string) ([]byte, error) {
	groups, err := s.groupsMeant(ctx, f)
	if err != nil {
		return nil, err
	}
	place := emit.Place{Account: f.account, Region: f.region, Groups: emitted(groups)}
	if len(groups) > 0 {
		s.err.Printf("%s\n", hooksLate[format])
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
