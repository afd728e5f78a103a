package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	groupcontroller "github.com/lifeboat-dev/lifeboat/internal/controller/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

const queues = "https://sqs.eu-west-1.amazonaws.com/210987654321/"

// ofCluster is the configuration of a controller that knows only the queue.
func ofCluster(t *testing.T, cluster string) Config {
	t.Helper()
	c := good()
	c.QueueURL, c.Region = queues+awssetup.QueueName(cluster), "eu-west-1"
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tags are a queue's tags, or the error of reading them.
type tags struct {
	of    map[string]string
	err   error
	asked int
}

func (q *tags) ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	q.asked++
	return &sqs.ListQueueTagsOutput{Tags: q.of}, q.err
}

func TestQueueTagNamesCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster string
		queue   tags
		want    string
		guessed bool
		asked   int
	}{
		"a plain name":           {cluster: "prod", want: "prod"},
		"dots":                   {"prod.example.com", tags{of: map[string]string{awssetup.TagCluster: "prod.example.com"}}, "prod.example.com", false, 1},
		"no such right":          {"prod.example.com", tags{err: errors.New("AccessDenied")}, "prod-example-com-7405b025", true, 1},
		"no such tag":            {"prod.example.com", tags{}, "prod-example-com-7405b025", true, 1},
		"a tag of another":       {"prod.example.com", tags{of: map[string]string{awssetup.TagCluster: "prod.example.org"}}, "prod-example-com-7405b025", true, 1},
		"it was called so":       {"my-eks-1a2b3c4d", tags{of: map[string]string{awssetup.TagCluster: "my-eks-1a2b3c4d"}}, "my-eks-1a2b3c4d", false, 1},
		"another cluster's tags": {"prod", tags{of: map[string]string{awssetup.TagCluster: "staging"}}, "prod", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := ofCluster(t, tc.cluster).resolveClusterName(t.Context(), &tc.queue)
			if c.ClusterName != tc.want || c.guessed != tc.guessed || tc.queue.asked != tc.asked {
				t.Errorf("taken for %q, guessed: %v, asked %d times; want %q, %v, %d", c.ClusterName, c.guessed, tc.queue.asked, tc.want, tc.guessed, tc.asked)
			}
			want := awssetup.Desired(tc.cluster, "210987654321", "eu-west-1")
			if diff := cmp.Diff(want.Rules, c.target().Desired.Rules); diff != "" {
				t.Errorf("rules (-made +looked for):\n%s", diff)
			}
			if advised := c.target().Desired.Cluster; advised != tc.cluster && advised != "NAME" {
				t.Errorf("advice is about cluster %s", advised)
			}
		})
	}
}

func TestGivenClusterNameIsNotInferred(t *testing.T) {
	c := good()
	c.QueueURL, c.ClusterName = queues+awssetup.QueueName("prod.example.com"), "prod.example.com"
	c, err := c.complete()
	if err != nil || c.guessed || c.wiring().Cluster != "prod.example.com" {
		t.Errorf("taken for %q, guessed: %v, %v", c.ClusterName, c.guessed, err)
	}
}

// The doctor and the canary use the configured cluster name, including its
// dots.
func TestDoctorProbesAreAnsweredForAnyClusterName(t *testing.T) {
	long := strings.Repeat("long-", 30)
	for _, tc := range []struct {
		cluster, probed string
		answered        bool
	}{
		{"prod", "prod", true},
		{"prod", "staging", false},
		{"prod", "prod.example.com", false},
		{"prod.example.com", "prod.example.com", true},
		{"prod.example.com", "prod-example-com-7405b025", true}, // the canary, with the same guess
		{"prod.example.com", "prod-example-com", false},
		{"prod.example.com", "prod.example-com", false},
		{long, long, true},
		{long, long + "er", false},
	} {
		scheme := runtime.NewScheme()
		if err := coordinationv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: intake.ProbeNamespace, Name: intake.ProbeLease}}
		intake.Announce(lease, "1", time.Now(), time.Now())
		kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease).Build()
		recorder := intake.NewRecorder(kube, nil, ofCluster(t, tc.cluster).expected())
		if err := recorder.Answer(t.Context(), intake.Probe{ID: "1", Cluster: tc.probed, Rule: awssetup.RoleSpotInterruption}); err != nil {
			t.Fatal(err)
		}
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)
		if answered := err == nil && lease.Annotations[intake.ProbeAnnotation(awssetup.RoleSpotInterruption)] != ""; answered != tc.answered {
			t.Errorf("cluster %s got a probe of %s: answered %v (%v)", tc.cluster, tc.probed, answered, err)
		}
	}
}

// doer is an AWS on which every step succeeds.
type doer struct {
	groupcontroller.AWS
	did []string
}

func (d *doer) Apply(_ context.Context, w nodegroup.Wanted, s nodegroup.Step) error {
	d.did = append(d.did, string(s.Verb)+" "+w.Cluster)
	return nil
}

// IAM denies the tag of a cluster that does not exist. If IAM matches group
// names, the tag creates instances that no role may terminate.
func TestNoGroupIsTaggedWithInferredName(t *testing.T) {
	tagged := map[string]string{"kubernetes.io/cluster/prod.example.com": "owned"}
	for name, tc := range map[string]struct {
		cluster string
		verb    nodegroup.Verb
		tags    map[string]string
		did     string
	}{
		"a plain name":              {"prod", nodegroup.CreateGroup, nil, "create group prod"},
		"a guess":                   {"prod.example.com", nodegroup.CreateGroup, nil, ""},
		"a guess, and tags":         {"prod.example.com", nodegroup.CreateGroup, map[string]string{"team": "a"}, ""},
		"the NodeGroup says whose":  {"prod.example.com", nodegroup.CreateGroup, tagged, "create group "},
		"a group that is there":     {"prod.example.com", nodegroup.PutTags, nil, "put tags "},
		"a hook of one that is":     {"prod.example.com", nodegroup.PutHook, nil, "put hook "},
		"it was called as it seems": {"eks-1a2b3c4d", nodegroup.CreateGroup, nil, "create group eks-1a2b3c4d"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := &doer{}
			cluster, api := ofCluster(t, tc.cluster).tagging(cloud)
			g := &v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{Tags: tc.tags}}
			g.Name = "workers"
			err := api.Apply(t.Context(), nodegroup.Want(g, cluster), nodegroup.Step{Verb: tc.verb})
			if got := strings.Join(cloud.did, ", "); got != tc.did {
				t.Errorf("did %q, want %q", got, tc.did)
			}
			if refused := tc.did == ""; refused != (err != nil && strings.Contains(err.Error(), "aws.clusterName")) {
				t.Errorf("error %v", err)
			}
		})
	}
}
