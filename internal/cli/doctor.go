package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// Exit codes of the doctor.
const (
	exitBroken       = 1
	exitCouldNotLook = 2
)

const doctorHelp = `Find out, before an interruption does, whether every notice that AWS sends about
a node will reach Lifeboat: queue, policy, encryption, rules, targets, and each
rule's pattern against an example of every event; and whether the lifecycle hooks
and warm pools of the cluster's Auto Scaling groups hold instances as they should.
Nothing is changed, and no message is taken from the queue.

Each finding says what will go wrong in an interruption and what mends it:
  broken   notices will not be heard
  unknown  it could not be looked at
  warning  it works, but not in every case
  info     it works, at a price that is worth knowing

With -f it reads files instead and needs no account: CloudFormation (YAML or
JSON), Terraform in JSON, what terraform show -json prints, and what
aws events list-rules, describe-rule and list-targets-by-rule print.

Exit codes: 0 nothing is broken; 1 something is; 2 it could not look, or not
everywhere.`

// doctorFlags are the flags of the doctor.
type doctorFlags struct {
	cluster, queueURL, region string
	offline, probe            bool
	files                     []string
}

func newDoctor(s *session) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what would keep notices from reaching Lifeboat",
		Long:  doctorHelp,
		Example: `  lifeboat doctor --cluster prod

  # A template, with no account
  lifeboat doctor --offline -f template.yaml

  # Whatever rules there are
  aws events list-rules | lifeboat doctor --offline -f -

  # For scripts
  lifeboat doctor --cluster prod -o json | jq '.findings[] | select(.severity == "broken")'`,
		Args: arguments(0, 0, "no arguments; files are given with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.doctor(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "name of the cluster (default: that of the kubeconfig)")
	flags.StringVar(&f.queueURL, "queue-url", "", "address of the queue that Lifeboat reads, where lifeboat wire did not make it")
	flags.StringVar(&f.region, "region", "", "AWS region of the cluster (default: that of the queue or the AWS configuration)")
	flags.BoolVar(&f.probe, "probe", false, "also send a private event through each rule, and time how long it takes to lifeboatd and back")
	flags.BoolVar(&f.offline, "offline", false, "look at the files given with -f, and at no account")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "file to look at; - is standard input; may be given again")
	return cmd
}

func (f *doctorFlags) check() error {
	switch {
	case f.offline && len(f.files) == 0:
		return usageErrorf("there is nothing to look at: give a file with -f")
	case !f.offline && len(f.files) > 0:
		return usageErrorf("files are looked at without an account: add --offline")
	case f.offline && f.probe:
		return usageErrorf("a probe goes through an account: leave out --offline")
	case f.cluster != "" && !clusterFormat.MatchString(f.cluster):
		return usageErrorf("%q is no name of a cluster: letters, digits, dots, hyphens and underscores, at most 253, a letter or digit first", f.cluster)
	case f.region != "" && !regionFormat.MatchString(f.region):
		return usageErrorf("%q is no AWS region: write it as in eu-west-1", f.region)
	}
	return nil
}

// examination is one run of the doctor.
type examination struct {
	*session

	flags    doctorFlags
	progress *terminal.Progress
	// kube is the cluster; nil where none can be reached.
	kube *cluster

	// seen are the cluster's Auto Scaling groups, nodes its nodes, and metadata who
	// reaches that of their instances.
	seen     []seenGroup
	nodes    []corev1.Node
	metadata []metadataAccess
	// hookPatterns are the hooks that the controller was told to answer; none: its own.
	hookPatterns []string
	// groupsDenied and groupsFailed say why groups were not looked at.
	groupsDenied, groupsFailed error

	// What was looked at, for the report.
	subject string
	notes   []string
}

// checkGroup is one part of what the doctor looks at. Its error says that it could
// not look; the other groups go on.
type checkGroup struct {
	name  string
	check func(context.Context) ([]finding.Finding, error)
}

// groups are what the doctor looks at, in order.
func (d *examination) groups() []checkGroup {
	if d.flags.offline {
		return []checkGroup{{"the files", d.files}}
	}
	groups := []checkGroup{
		{"the wiring", d.wiring},
		{"the node groups", d.nodeGroups},
		{"the agents", d.agents},
		{"the workloads", d.workloads},
	}
	if d.flags.probe {
		groups = append(groups, checkGroup{"the way of a probe", d.probe})
	}
	return groups
}

func (s *session) doctor(ctx context.Context, f doctorFlags) error {
	d := &examination{session: s, flags: f, progress: terminal.NewProgress(s.err)}
	defer d.progress.Stop()
	if !f.offline {
		d.reachCluster(ctx)
		d.lookAtGroups(ctx)
	}
	var all []finding.Finding
	var failed error
	for _, g := range d.groups() {
		d.progress.Step("looking at %s", g.name)
		found, err := g.check(ctx)
		all = append(all, found...)
		failed = errors.Join(failed, err)
	}
	d.progress.Stop()
	finding.Sort(all)
	if failed != nil && len(all) == 0 {
		return couldNotLook(failed)
	}
	if err := d.report(all); err != nil {
		return couldNotLook(err)
	}
	switch {
	case finding.Has(all, finding.Broken):
		return exitError{Code: exitBroken}
	case failed != nil:
		return couldNotLook(failed)
	case finding.Has(all, finding.Unknown):
		return exitError{Code: exitCouldNotLook}
	}
	return nil
}

// couldNotLook gives an error the exit code that says so. Wrong usage has the same.
func couldNotLook(err error) error { return exitError{Code: exitCouldNotLook, Err: err} }

// reachCluster connects to the cluster. Without one the wiring can be looked at
// all the same.
func (d *examination) reachCluster(ctx context.Context) {
	c, err := d.connect(ctx)
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("The cluster was not looked at: %v.", err))
		return
	}
	d.kube = &c
}

// wiring looks at the account.
func (d *examination) wiring(ctx context.Context) ([]finding.Finding, error) {
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
		return nil, errors.New("no cluster is named: add --cluster NAME, the name that the cluster has on EKS or in kOps, or --queue-url")
	}
	cfg.Region = cmp.Or(d.flags.region, diagnose.RegionOfQueue(queueURL), cfg.Region)
	if cfg.Region == "" {
		return nil, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return nil, awsError{err}
	}
	target := diagnose.Target{
		Want: wiring.Wanted(name, place.Account, place.Region), QueueURL: queueURL,
		Step: func(what string) { d.progress.Step("%s", what) },
	}
	found, err := diagnose.Look(ctx, diagnose.NewClients(sqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg)), target)
	var misplaced *diagnose.MisplacedError
	switch {
	case errors.As(err, &misplaced):
		return nil, awsError{fmt.Errorf("%w: check --queue-url, --region and AWS_PROFILE", err)}
	case err != nil:
		return nil, awsError{err}
	}
	d.subject = fmt.Sprintf("Queue %s in account %s, region %s", snapshot.Name(found.Queue), place.Account, place.Region)
	around := d.tools(ctx)
	if sandbox.queueURL != "" {
		around.Lifeboat = nil // it is a process there: no Deployment says whether it runs
	}
	around.Groups = d.known()
	return diagnose.Run(found, target.Want, around), nil
}

// counted is a number of things, as in "1 rule".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
