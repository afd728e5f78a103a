package iam_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/emulator"
	asgstate "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	ec2state "github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

const (
	ownGroup     = "prod-nodes" // has the tag kubernetes.io/cluster/prod
	eksGroup     = "eks-nodes"  // has the tag eks:cluster-name
	foreignGroup = "dev-nodes"  // has the tag of another cluster
	nodeRole     = "nodes.prod"
	roleName     = "lifeboat"
)

// ownTags are the tags of nodes and groups of the cluster; for node groups of EKS if eks is set.
func ownTags(eks bool) map[string]string {
	if eks {
		return map[string]string{"eks:cluster-name": "prod"}
	}
	return map[string]string{"kubernetes.io/cluster/prod": "owned"}
}

// awsAccount is an emulated account with the queue, groups and a launch template of cluster prod.
type awsAccount struct {
	t        *testing.T
	server   *emulator.Server
	url      string
	client   *http.Client
	wiring   awssetup.Wiring
	template string
	targets  string // the ARN of a target group
}

func newAWSAccount(t *testing.T) *awsAccount {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	a := &awsAccount{t: t, server: server, url: url, client: emulatortest.HTTPClient(t)}
	a.wiring = awssetup.Desired("prod", server.Account(), server.Region())
	for _, queue := range []string{a.wiring.Queue.Name, "karpenter", "foreign"} {
		a.must(server.States.SQS.Create(queue, nil, nil))
	}
	for name, tags := range map[string]map[string]string{
		ownGroup: ownTags(false), eksGroup: ownTags(true), foreignGroup: {"kubernetes.io/cluster/dev": "owned"},
	} {
		a.must(server.States.AutoScaling.CreateGroup(asgstate.Group{Name: name, Max: 3, Tags: tags}))
	}
	a.must(server.States.IAM.PutRole(roleName))
	for _, role := range []string{nodeRole, "admin"} {
		a.must(server.States.IAM.PutRole(role))
		_, err := server.States.IAM.CreateProfile(role, "", nil)
		a.must(err)
		a.must(server.States.IAM.AddRole(role, role))
	}
	a.template = a.newTemplate(nodeRole)
	var err error
	a.targets, err = server.States.ELB.Create("web", "", 80)
	a.must(err)
	return a
}

func (a *awsAccount) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// newTemplate makes a launch template that names every kind of resource.
func (a *awsAccount) newTemplate(profile string) string {
	a.t.Helper()
	data := ec2state.TemplateData{
		ImageID: "ami-1", InstanceType: "m5.large", KeyName: "ops",
		SecurityGroupIDs:   []string{a.server.States.EC2.SecurityGroups()[0].ID},
		BlockDevices:       []ec2state.BlockDevice{{DeviceName: "/dev/xvdb", EBS: ec2state.EBS{SnapshotID: "snap-1"}}},
		Placement:          ec2state.Placement{GroupName: "near"},
		IamInstanceProfile: ec2state.InstanceProfile{Name: profile},
		TagSpecifications:  []ec2state.TagSpecification{{ResourceType: "volume", Tags: []struct{ Key, Value string }{{"team", "a"}}}},
	}
	data.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationID = "cr-1"
	made, err := a.server.States.EC2.CreateTemplate("nodes-"+profile, "", "", data, nil)
	a.must(err)
	return made.ID
}

// instance launches an instance with these tags.
func (a *awsAccount) instance(tags map[string]string) string {
	a.t.Helper()
	made, err := a.server.States.EC2.Launch(ec2state.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Tags: tags})
	a.must(err)
	return made[0].ID
}

// session is a caller with one role.
type session struct {
	*awsAccount

	ctx    context.Context
	queues *sqs.Client
	rules  *eventbridge.Client
	ec2    *ec2.Client
	groups *autoscaling.Client
	trail  *cloudtrail.Client
	elb    *elb.Client
}

// as gives the role exactly this policy, as AWS would read it, and returns a session of the role.
// Instance is the instance whose metadata gave the credentials; empty: none.
func (a *awsAccount) as(d iam.Document, instance string) session {
	a.t.Helper()
	text, err := json.Marshal(d)
	a.must(err)
	a.must(a.server.States.IAM.PutRolePolicy(roleName, "lifeboat", string(text)))
	role, until := "arn:aws:iam::"+a.server.Account()+":role/"+roleName, time.Now().Add(time.Hour)
	_, c := a.server.States.STS.AssumeRole(role, "controller", until)
	if instance != "" {
		c = a.server.States.STS.AssumeRoleOfInstance(role, instance, until)
	}
	cfg := aws.Config{
		Region: a.server.Region(), BaseEndpoint: &a.url, HTTPClient: a.client, RetryMaxAttempts: 1,
		Credentials: awshttp.StaticCredentials(c.AccessKeyID, c.SecretAccessKey),
	}
	return session{
		awsAccount: a, ctx: a.t.Context(), queues: sqs.NewFromConfig(cfg), rules: eventbridge.NewFromConfig(cfg),
		ec2: ec2.NewFromConfig(cfg), groups: autoscaling.NewFromConfig(cfg), trail: cloudtrail.NewFromConfig(cfg),
		elb: elb.NewFromConfig(cfg),
	}
}

// unauthorized returns the permission whose lack AWS reports; empty: err is none of that kind.
func unauthorized(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) || !slices.Contains([]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}, api.ErrorCode()) {
		return ""
	}
	_, after, _ := strings.Cut(api.ErrorMessage(), "is not authorized to perform: ")
	permission, _, _ := strings.Cut(after, " ")
	return permission
}

// printed are the policies that `lifeboat aws iam` prints for cluster prod.
func printed(a *awsAccount) map[string]iam.Document {
	named, err := a.wiring.ForGroups([]string{ownGroup})
	a.must(err)
	prefix := a.wiring
	prefix.Groups = []string{"prod-*"}
	return map[string]iam.Document{
		"controller":           iam.Controller(a.wiring, true),
		"controller of groups": iam.Controller(named, true),
		"manage groups":        iam.ManageGroups(iam.Document{Version: "2012-10-17"}, prefix, nodeRole, "team"),
		"feed Karpenter":       iam.FeedKarpenter(iam.Document{Version: "2012-10-17"}, a.wiring, "karpenter"),
		"read target health":   iam.ReadTargetHealth(iam.Document{Version: "2012-10-17"}, a.wiring),
		"read event history":   iam.ReadEventHistory(iam.Document{Version: "2012-10-17"}, a.wiring),
		"boot":                 iam.Boot(a.wiring),
		"boot of groups":       iam.Boot(named),
		"setup":                iam.Setup(a.wiring),
		"setup of groups":      iam.Setup(named),
	}
}

// without returns the document without one action, or without one resource, of one statement.
func without(d iam.Document, statement int, action, resource string) iam.Document {
	d.Statement = slices.Clone(d.Statement)
	s := &d.Statement[statement]
	s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(v string) bool { return v == action })
	s.Resource = slices.DeleteFunc(slices.Clone(s.Resource), func(v string) bool { return v == resource })
	if len(s.Action) == 0 || len(s.Resource) == 0 {
		d.Statement = slices.Delete(d.Statement, statement, statement+1)
	}
	return d
}

// Each permission in each policy is there for a call: with the policy the call is authorized, and
// without the permission, or without a resource of its statement, it is not.
func TestEachPermissionAllowsItsCall(t *testing.T) {
	t.Parallel()
	a := newAWSAccount(t)
	for name, d := range printed(a) {
		for i, s := range d.Statement {
			for _, action := range s.Action {
				call := calls()[action]
				if call == nil {
					t.Errorf("%s: %s of %s has no call in this test", name, action, s.Sid)
					continue
				}
				checkPermission(t, a, name, d, i, action, call)
			}
		}
	}
}

// checkPermission makes the call of one action with the policy, and with parts of it removed.
func checkPermission(t *testing.T, a *awsAccount, name string, d iam.Document, statement int, action string, call func(session, iam.Statement) error) {
	t.Helper()
	s := d.Statement[statement]
	instance := ""
	if strings.HasPrefix(name, "boot") {
		instance = "i-1"
	}
	// Tagging as a part of a launch has other permissions than the launch.
	if got := unauthorized(call(a.as(d, instance), s)); got != "" {
		t.Errorf("%s: %s of %s: the call lacks %s", name, action, s.Sid, got)
	}
	if got := unauthorized(call(a.as(without(d, statement, action, ""), instance), s)); got != action {
		t.Errorf("%s: without %s in %s the call lacks %q", name, action, s.Sid, got)
	}
	if action != "ec2:RunInstances" {
		return
	}
	for _, resource := range s.Resource {
		if got := unauthorized(call(a.as(without(d, statement, "", resource), instance), s)); got != action {
			t.Errorf("%s: without %s in %s the call lacks %q", name, resource, s.Sid, got)
		}
	}
}
