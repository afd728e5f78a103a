package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

const awsHelp = `Set up the AWS resources through which Lifeboat receives interruption notices.

The resources of a cluster are a queue, its dead-letter queue and the EventBridge
rules that send to it. They are in the account and region of the cluster. With --groups they
include the lifecycle hooks of Auto Scaling groups, which hold an instance until
its node is Ready or drained. plan shows the changes, setup shows and makes them,
destroy deletes the resources. Each command can run again: it skips what is
correct and corrects what has drifted.

lifeboat aws tags what it creates with lifeboat.dev/cluster. It changes nothing
without that tag, unless you add --adopt.

To use CloudFormation or Terraform instead, run emit; plan then checks the
result. iam prints the required permissions.`

func newAWS(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "aws",
		Short: "Create, check or print the AWS resources: queue, rules, permissions",
		Long:  awsHelp,
		Example: `  # Show the changes, and then make them
  lifeboat aws plan --cluster prod
  lifeboat aws setup --cluster prod

  # Also create hooks for the groups whose nodes are in the cluster
  lifeboat aws setup --cluster prod --groups nodes-a,nodes-b

  # Print the resources as a CloudFormation template, without an account
  lifeboat aws emit --cluster prod --format cloudformation

  # Print the IAM policy and the trust policies of the controller's role
  lifeboat aws iam --cluster prod`,
	})
	cmd.AddCommand(newAWSPlan(s), newAWSSetup(s), newAWSDestroy(s), newAWSEmit(s), newAWSIAM(s))
	return cmd
}

// awsFlags are the flags that select the resources of a cluster.
type awsFlags struct {
	cluster, account, region string
	adopt, yes               bool
	// groups selects Auto Scaling groups; see selectedGroups.
	groups string
	// fewRules selects the merged rules; fewGiven says that the flag was given.
	fewRules, fewGiven bool
	// topic is the topic that clusters share; topicGiven says that the flag was given. Empty with
	// it: the cluster has rules of its own.
	topic      string
	topicGiven bool
	// senders are the principals that may send to the queue themselves.
	senders []string
}

var (
	clusterFormat = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
	regionFormat  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	accountFormat = regexp.MustCompile(`^[0-9]{12}$`)
	senderFormat  = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[^\s:]+$`)
)

func (f *awsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "name of the cluster; all resource names contain it")
	cmd.Flags().StringVar(&f.region, "region", "", "AWS region of the cluster (default: the region of the AWS configuration)")
}

// addSenders adds --sender, for commands that write or compare the queue's policy.
func (f *awsFlags) addSenders(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.senders, "sender", nil, "ARN of a role or user that may send to the queue itself, for drills and to redrive dead letters; "+
		"asterisks match any text (default: only the rules may send). Name it on every run: a run without it removes the permission")
}

// addFewRules adds --few-rules, for commands that write or compare rules.
func (f *awsFlags) addFewRules(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.fewRules, "few-rules", false, "merge the rules: three instead of eight, which match the same events. plan and setup keep the form that they find")
}

// addTopic adds --shared-topic.
func (f *awsFlags) addTopic(cmd *cobra.Command, without string) {
	cmd.Flags().StringVar(&f.topic, "shared-topic", "", "name of an SNS topic that clusters of the account share: three rules send to it, and it sends to the queue of each cluster ("+without+")")
}

// given records which of the flags were given.
func (f *awsFlags) given(cmd *cobra.Command) {
	f.fewGiven, f.topicGiven = cmd.Flags().Changed("few-rules"), cmd.Flags().Changed("shared-topic")
}

// sharedTopic is the topic that the cluster shares: that of the flag, or the one in the account.
func (f *awsFlags) sharedTopic(o awssetup.Observed) string {
	if f.topicGiven {
		return f.topic
	}
	return o.Topic.Name
}

// inForm returns the wanted wiring with a shared topic, or with merged or separate rules, as the flags
// say or the account has them.
func (f *awsFlags) inForm(w awssetup.Wiring, o awssetup.Observed) (awssetup.Wiring, error) {
	if topic := f.sharedTopic(o); topic != "" {
		return w.Shared(topic)
	}
	merged := awssetup.AreMerged(w, o)
	switch {
	case f.fewRules, merged && !f.fewGiven:
		return w.Merged()
	case merged:
		return w.Separated(), nil
	}
	return w, nil
}

func (f *awsFlags) checkSenders() error {
	for _, arn := range f.senders {
		if !senderFormat.MatchString(arn) {
			return usageErrorf("--sender %q is not the ARN of a role or user: write it like arn:aws:iam::210987654321:role/ops. For a session (arn:aws:sts:…) name its role", arn)
		}
	}
	return nil
}

func (f *awsFlags) checkTopic() error {
	switch {
	case f.topic == "":
		return nil
	case f.fewGiven && !f.fewRules:
		return usageErrorf("a shared topic always has three rules: remove --few-rules=false")
	}
	if err := awssetup.CheckTopic(f.topic); err != nil {
		return usageErrorf("--shared-topic: %v", err)
	}
	return nil
}

func (f *awsFlags) check() error {
	switch {
	case f.cluster == "":
		return usageErrorf("the cluster name is missing: add --cluster NAME (the name in EKS or kOps)")
	case !clusterFormat.MatchString(f.cluster):
		return usageErrorf("%q is not a valid cluster name: use at most 253 letters, digits, dots, hyphens and underscores, and start with a letter or digit", f.cluster)
	case f.region != "" && !regionFormat.MatchString(f.region):
		return usageErrorf("%q is not a valid AWS region: write it like eu-west-1", f.region)
	case f.account != "" && !accountFormat.MatchString(f.account):
		return usageErrorf("%q is not a valid AWS account: write its twelve digits", f.account)
	}
	if err := f.checkGroups(); err != nil {
		return err
	}
	if err := f.checkTopic(); err != nil {
		return err
	}
	return f.checkSenders()
}

// setupClients holds the AWS clients and the wanted resources.
type setupClients struct {
	clients awssetup.Clients
	groups  *nodegroup.API
	wanted  awssetup.Wiring
}

// connectSetup makes clients for the account of the credentials.
func (s *session) connectSetup(ctx context.Context, f awsFlags) (setupClients, error) {
	cfg, _, err := s.awsConfig(ctx)
	if err != nil {
		return setupClients{}, err
	}
	cfg.Region = cmp.Or(f.region, cfg.Region)
	if cfg.Region == "" {
		return setupClients{}, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return setupClients{}, awsError{err}
	}
	return setupClients{
		clients: awssetup.NewClients(cfg),
		groups:  nodegroup.NewCommandAPI(cfg),
		wanted:  awssetup.Desired(f.cluster, place.Account, place.Region),
	}, nil
}

// observe reads the existing resources.
func (w setupClients) observe(ctx context.Context) (awssetup.Observed, error) {
	o, err := awssetup.Observe(ctx, w.clients, w.wanted)
	if err != nil {
		return awssetup.Observed{}, awsError{fmt.Errorf("reading the AWS resources of cluster %s in %s: %w", w.wanted.Cluster, w.wanted.Region, err)}
	}
	return o, nil
}

// askBefore asks for confirmation unless yes is set.
func (s *session) askBefore(ctx context.Context, what string, yes bool) error {
	if yes {
		return nil
	}
	return s.requireConfirmation(ctx, bufio.NewReader(s.env.In), what, "")
}

// Known errors of awssetup.
var (
	awsConflicts = command.NewProblem("aws-conflicts", "Resources of Lifeboat's names exist, and something else created them.",
		"Nothing was changed. Run `lifeboat aws plan` to see the options for each conflict; --adopt takes the resources over.")
	awsNameBlocked = command.NewProblem("aws-queue-name-blocked", "A queue of this name was deleted a moment ago.",
		"SQS blocks the name of a deleted queue for 60 seconds: try again in a minute.")
	awsQueueRace = command.NewProblem("aws-queue-exists", "Another client created the queue with other settings.",
		"Another client created this queue a moment ago: run `lifeboat aws plan` again.")
	awsRuleQuota = command.NewProblem("aws-rule-quota", "The default event bus has no room for more rules.",
		"The default event bus has reached its quota of rules (300 by default): delete some, or request a higher quota from AWS.")
	awsRuleRace = command.NewProblem("aws-rule-changing", "Another client is changing the same rule.",
		"Another client is changing the same rule: run the command again.")
)

// explainSetup returns the Problem that an error of awssetup is.
func explainSetup(err error) command.Problem {
	var (
		call    *awssetup.CallError
		api     smithy.APIError
		recent  *sqstypes.QueueDeletedRecently
		another *sqstypes.QueueNameExists
	)
	if errors.Is(err, awssetup.ErrConflicts) {
		return awsConflicts
	}
	if !errors.As(err, &call) {
		return command.Problem{}
	}
	switch {
	case errors.As(err, &recent):
		return awsNameBlocked
	case errors.As(err, &another):
		return awsQueueRace
	case !errors.As(err, &api):
		return command.Problem{}
	}
	switch api.ErrorCode() {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError":
		return command.AWSForbidden.With("These AWS credentials lack the permission " + call.Permission + ": ask for it, or check AWS_PROFILE.\n" +
			"`lifeboat aws iam --role setup` prints all permissions that lifeboat aws needs.")
	case "LimitExceededException":
		return awsRuleQuota
	case "ConcurrentModificationException":
		return awsRuleRace
	}
	return command.Problem{}
}
