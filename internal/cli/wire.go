package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

const wireHelp = `Wire an AWS account up, so that Lifeboat hears of interruptions.

The wiring of a cluster is a queue, its dead-letter queue and the EventBridge
rules that fill it, in the account and region of the cluster. With --groups it is
also the lifecycle hooks of Auto Scaling groups, which hold an instance until its
node is Ready, or drained. plan shows what would change, apply shows and does it,
destroy takes it away. All of it can be repeated: what is as wanted is left
alone, what has drifted is put right.

What lifeboat wire makes carries the tag lifeboat.dev/cluster. It does not touch
anything that does not, unless --adopt says so.

Who would rather have it in CloudFormation or Terraform uses emit; plan then
checks what those made. iam prints the permissions that are needed.`

func newWire(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "wire",
		Short: "Make, check or print the AWS wiring: queue, rules, permissions",
		Long:  wireHelp,
		Example: `  # What would change, and then change it
  lifeboat wire plan --cluster prod
  lifeboat wire apply --cluster prod

  # And hooks for the groups whose nodes are in the cluster
  lifeboat wire apply --cluster prod --groups nodes-a,nodes-b

  # The same as a CloudFormation template, without an account
  lifeboat wire emit --cluster prod --format cloudformation

  # The IAM policy of the controller, and who may take its role on
  lifeboat wire iam --cluster prod`,
	})
	cmd.AddCommand(newWirePlan(s), newWireApply(s), newWireDestroy(s), newWireEmit(s), newWireIAM(s))
	return cmd
}

// wireFlags are the flags that say which wiring is meant.
type wireFlags struct {
	cluster, account, region string
	adopt, yes               bool
	// groups says which Auto Scaling groups are meant; see groupsMeant.
	groups string
}

var (
	clusterFormat = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
	regionFormat  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	accountFormat = regexp.MustCompile(`^[0-9]{12}$`)
)

func (f *wireFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "name of the cluster; it becomes part of all names")
	cmd.Flags().StringVar(&f.region, "region", "", "AWS region of the cluster (default: that of the AWS configuration)")
}

func (f *wireFlags) check() error {
	switch {
	case f.cluster == "":
		return usageErrorf("no cluster is named: add --cluster NAME, the name that the cluster has on EKS or in kOps")
	case !clusterFormat.MatchString(f.cluster):
		return usageErrorf("%q is no name of a cluster: letters, digits, dots, hyphens and underscores, at most 253, a letter or digit first", f.cluster)
	case f.region != "" && !regionFormat.MatchString(f.region):
		return usageErrorf("%q is no AWS region: write it as in eu-west-1", f.region)
	case f.account != "" && !accountFormat.MatchString(f.account):
		return usageErrorf("%q is no AWS account: write its twelve digits", f.account)
	}
	return f.checkGroups()
}

// wired is a place on AWS, and what is wanted there.
type wired struct {
	clients wiring.Clients
	groups  *nodegroup.API
	wanted  wiring.Wiring
}

// connectWiring makes clients for the account that the credentials belong to.
func (s *session) connectWiring(ctx context.Context, f wireFlags) (wired, error) {
	cfg, _, err := s.awsConfig(ctx)
	if err != nil {
		return wired{}, err
	}
	cfg.Region = cmp.Or(f.region, cfg.Region)
	if cfg.Region == "" {
		return wired{}, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return wired{}, awsError{err}
	}
	return wired{
		clients: wiring.Clients{SQS: sqs.NewFromConfig(cfg), Events: eventbridge.NewFromConfig(cfg)},
		groups:  nodegroup.NewAPI(cfg),
		wanted:  wiring.Wanted(f.cluster, place.Account, place.Region),
	}, nil
}

// observe reads what is there.
func (w wired) observe(ctx context.Context) (wiring.Observed, error) {
	o, err := wiring.Observe(ctx, w.clients.SQS, w.clients.Events, w.wanted)
	if err != nil {
		return wiring.Observed{}, awsError{fmt.Errorf("looking at the wiring of cluster %s in %s: %w", w.wanted.Cluster, w.wanted.Region, err)}
	}
	return o, nil
}

// askBefore asks whether to go on.
func (s *session) askBefore(ctx context.Context, what string, yes bool) error {
	if yes {
		return nil
	}
	return s.goOn(ctx, bufio.NewReader(s.env.In), what, "")
}

// hintWiring says what to do next about what can go wrong with the wiring.
func (s *session) hintWiring(err error) string {
	var (
		call    *wiring.CallError
		api     smithy.APIError
		recent  *sqstypes.QueueDeletedRecently
		another *sqstypes.QueueNameExists
	)
	if errors.Is(err, wiring.ErrConflicts) {
		return "Nothing was changed. `" + s.name + " wire plan` says what can be done about each; --adopt takes them over."
	}
	if !errors.As(err, &call) {
		return ""
	}
	switch {
	case errors.As(err, &recent):
		return "SQS does not give a name out again for 60 seconds after a queue was deleted: try again in a minute."
	case errors.As(err, &another):
		return "Somebody made this queue a moment ago: run `" + s.name + " wire plan` again."
	case !errors.As(err, &api):
		return ""
	}
	switch api.ErrorCode() {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation":
		return "These AWS credentials lack the permission " + call.Permission + ": ask for it, or check AWS_PROFILE.\n" +
			"`" + s.name + " wire iam --role wire` prints all that lifeboat wire needs."
	case "LimitExceededException":
		return "The default event bus has as many rules as its quota allows (300 unless raised): delete some, or ask AWS for more."
	case "ConcurrentModificationException":
		return "Somebody else changes the same rule: run it again."
	}
	return ""
}
