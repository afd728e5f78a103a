package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

// Exit codes of the command doctor. Wrong usage is ExitUsage.
const (
	exitBroken     = 1
	exitIncomplete = 3
	exitWarning    = 4
)

const doctorHelp = `Check whether every AWS notice about a node will reach Lifeboat. The checks
cover the queue, its policy and encryption, the EventBridge rules and targets,
and each rule's pattern against an example of every event. They also cover the
lifecycle hooks and warm pools of the cluster's Auto Scaling groups.
The command changes nothing and takes no message from the queue.

Each finding says what will go wrong in an interruption and how to fix it:
  broken   notices will not arrive
  unknown  it could not be checked
  warning  it works, but not in every case
  info     it works, with a drawback that you should know

With -f it reads files instead and needs no account: CloudFormation, SAM and
the output of CDK; Terraform configurations, plans and states; and the output of
aws events list-rules, describe-rule and list-targets-by-rule. A directory
stands for its files. Files that are arguments need not be about wiring.

Exit codes: 0 no finding that counts; 1 something is broken; 2 wrong usage; 3 some
checks could not run; 4 warnings or notes, if --fail-on counts them.`

// doctorFlags are the flags of the command doctor.
type doctorFlags struct {
	cluster, queueURL, region string
	account                   string
	parameters                map[string]string
	offline, probe            bool
	files                     []string
	// arguments are further files. They need not be about wiring: pre-commit names all that
	// a commit changes.
	arguments []string
	// failOn is the least severity that changes the exit code.
	failOn string
	// baseline is the file of accepted findings; writeBaseline writes it.
	baseline      string
	writeBaseline bool
}

// counts reports whether a severity changes the exit code.
func (f doctorFlags) counts(s finding.Severity) bool {
	all := finding.Severities()
	return slices.Contains(all[:slices.Index(all, finding.Severity(f.failOn))+1], s)
}

func newDoctor(s *session) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that AWS notices reach Lifeboat",
		Long:  doctorHelp,
		Example: `  lifeboat doctor --cluster prod

  # Check a template, without an account
  lifeboat doctor --offline -f template.yaml

  # Check a Terraform configuration, with the modules that terraform init has fetched
  lifeboat doctor --offline -f infra/prod

  # Check all existing rules
  aws events list-rules | lifeboat doctor --offline -f -

  # In a pipeline: SARIF for code scanning, without accepted findings
  lifeboat doctor --offline -f template.yaml -o sarif --baseline doctor-baseline.json > doctor.sarif

  # For scripts
  lifeboat doctor --cluster prod -o json | jq '.findings[] | select(.severity == "broken")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.offline {
				return nil
			}
			return arguments(0, 0, "no arguments without --offline; files are given with -f")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.arguments = args
			if err := f.check(); err != nil {
				return err
			}
			return s.doctor(cmd.Context(), f)
		},
	}
	f.addTarget(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.account, "account", "", "with --offline: AWS account of the files, if they do not contain it")
	flags.StringToStringVar(&f.parameters, "parameter", nil, "with --offline: value of a parameter or variable of the files, as NAME=VALUE; repeatable")
	flags.BoolVar(&f.probe, "probe", false, "also send a test event through each rule, and measure the time until lifeboatd answers")
	flags.BoolVar(&f.offline, "offline", false, "check the files given with -f, without an account")
	flags.StringVar(&f.baseline, "baseline", "", "file of accepted findings, which do not count")
	flags.BoolVar(&f.writeBaseline, "write-baseline", false, "accept all present findings: write them to the file of --baseline")
	flags.StringVar(&f.failOn, "fail-on", string(finding.Unknown), "least severity that changes the exit code: broken, unknown, warning or info")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "file, directory or glob to check; - is standard input; repeatable")
	return command.Outputs(cmd, command.OutputText, command.OutputJSON, outputSARIF, outputJUnit)
}

// addTarget adds the flags that select the cluster and its AWS resources.
func (f *doctorFlags) addTarget(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "name of the cluster (default: the cluster of the kubeconfig)")
	flags.StringVar(&f.queueURL, "queue-url", "", "URL of the queue that Lifeboat reads, if lifeboat aws did not create it")
	flags.StringVar(&f.region, "region", "", "AWS region of the cluster (default: the region of the queue or of the AWS configuration)")
}

func (f *doctorFlags) check() error { //nolint:gocyclo // one check for each combination of flags
	switch {
	case f.offline && len(f.files)+len(f.arguments) == 0:
		return usageErrorf("there is nothing to check: add -f FILE")
	case !f.offline && len(f.files) > 0:
		return usageErrorf("-f works only without an account: add --offline")
	case !f.offline && (f.account != "" || len(f.parameters) > 0):
		return usageErrorf("--account and --parameter are for files: add --offline")
	case f.account != "" && !accountFormat.MatchString(f.account):
		return usageErrorf("%q is not an AWS account: write its 12 digits", f.account)
	case f.offline && f.probe:
		return usageErrorf("--probe needs an account: remove --offline")
	case f.writeBaseline && f.baseline == "":
		return usageErrorf("--write-baseline needs the file: add --baseline FILE")
	case !slices.Contains(finding.Severities(), finding.Severity(f.failOn)):
		return usageErrorf("%q is not a severity for --fail-on: use broken, unknown, warning or info", f.failOn)
	case f.cluster != "" && !clusterFormat.MatchString(f.cluster):
		return usageErrorf("%q is not a valid cluster name: use at most 253 letters, digits, dots, hyphens and underscores, and start with a letter or digit", f.cluster)
	case f.region != "" && !regionFormat.MatchString(f.region):
		return usageErrorf("%q is not a valid AWS region: write it like eu-west-1", f.region)
	}
	return nil
}

// doctorRun is one run of the command doctor.
type doctorRun struct {
	*session

	flags    doctorFlags
	progress *terminal.Progress
	// kube is the cluster. It is nil if the cluster is not reachable.
	kube *cluster
	// lifeboat is Lifeboat in the cluster. It is nil if the cluster is not reachable.
	lifeboat *doctor.Installation
	// agentNamespace is the namespace of the agents' DaemonSet; empty if there is none.
	agentNamespace string
	// controllerArgs are the arguments of the controller's Deployment.
	controllerArgs []string
	// policiesFound are the InterruptionPolicies.
	policiesFound []v1beta1.InterruptionPolicy
	// queue is the name of the checked queue; empty if it is not known.
	queue string
	// account are its queues and rules, and wiring what Lifeboat would create; nil if they were not read.
	account *snapshot.Snapshot
	wiring  awssetup.Wiring

	// seen are the cluster's Auto Scaling groups, nodes its nodes, and metadata
	// the metadata options of their instances.
	seen     []seenGroup
	nodes    []corev1.Node
	metadata []metadataAccess
	// hookPatterns are the hook names that the controller is configured to
	// answer. Empty means the controller's default.
	hookPatterns []string
	// groupsDenied says that AWS refused to show the groups.
	groupsDenied error
	// policiesRead is true if policiesFound are all policies.
	policiesRead bool
	// unread are the parts that could not be checked.
	unread []unread

	// filesRead are the names of the files that were checked.
	filesRead []string
	// nothing is true if none of the arguments is about wiring.
	nothing bool

	// The subject and the notes of the report.
	subject string
	notes   []string
}

func (s *session) doctor(ctx context.Context, f doctorFlags) error {
	d := &doctorRun{session: s, flags: f, progress: terminal.NewProgress(s.err)}
	defer d.progress.Stop()
	if !f.offline {
		d.reachCluster(ctx)
		d.readInstallation(ctx)
		d.readGroups(ctx)
	}
	all, failed := d.examine(ctx, d.groups())
	d.progress.Stop()
	if failed != nil && len(all) == 0 {
		return incomplete(failed)
	}
	all = append(all, d.unreadFindings()...)
	finding.Sort(all)
	all, err := d.accept(all)
	if err != nil {
		return incomplete(err)
	}
	if err := d.report(all); err != nil {
		return incomplete(err)
	}
	return f.exitOf(all, failed)
}

// examine runs checks. The error is that of the main ones.
func (d *doctorRun) examine(ctx context.Context, groups []checkGroup) (all []finding.Finding, failed error) {
	for _, g := range groups {
		d.progress.Step("checking %s", g.name)
		found, err := g.check(ctx)
		all = append(all, found...)
		d.notChecked(g.name, err)
		if g.main {
			failed = errors.Join(failed, err)
		}
	}
	return all, failed
}

// reachCluster connects to the cluster. The AWS resources can be checked without
// one.
func (d *doctorRun) reachCluster(ctx context.Context) {
	c, err := d.connect(ctx)
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("The cluster was not checked: %v.", err))
		return
	}
	d.kube = &c
}

// awsResources checks the queue and the rules of the AWS account.
func (d *doctorRun) awsResources(ctx context.Context) ([]finding.Finding, error) {
	cfg, sandbox, err := d.awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	queueURL := cmp.Or(d.flags.queueURL, sandbox.queueURL)
	name := d.flags.cluster
	if name == "" && d.flags.queueURL == "" && d.kube != nil {
		name = d.kube.name
	}
	if name == "" && queueURL == "" {
		return nil, errors.New("the cluster name is not known: add --cluster NAME (the name in EKS or kOps), or --queue-url")
	}
	cfg.Region = cmp.Or(d.flags.region, doctor.RegionOfQueue(queueURL), cfg.Region)
	if cfg.Region == "" {
		return nil, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return nil, awsError{err}
	}
	target := doctor.Target{
		Desired: awssetup.Desired(name, place.Account, place.Region), QueueURL: queueURL,
		Step: func(what string) { d.progress.Step("%s", what) },
	}
	found, err := doctor.ReadAccount(ctx, doctor.ClientsFor(cfg), target)
	var misplaced *doctor.WrongLocationError
	switch {
	case errors.As(err, &misplaced):
		return nil, awsError{fmt.Errorf("%w: check --queue-url, --region and AWS_PROFILE", err)}
	case err != nil:
		return nil, awsError{err}
	}
	d.queue, d.account, d.wiring = snapshot.Name(found.Queue), &found, target.Desired
	d.subject = fmt.Sprintf("Queue %s in account %s, region %s", snapshot.Name(found.Queue), place.Account, place.Region)
	around := d.tools(ctx)
	around.Groups = d.ruleGroups()
	return doctor.Run(found, target.Desired, around), nil
}

// counted formats a number of things, as in "1 rule".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
