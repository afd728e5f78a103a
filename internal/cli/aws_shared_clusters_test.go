package cli

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// spotNode launches a spot instance, which is a node of a cluster.
func (e *awsAccount) spotNode(w *polltest.World) string {
	e.t.Helper()
	made, err := e.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
	if err != nil {
		e.t.Fatal(err)
	}
	w.Until("it runs", func() bool {
		in, _ := e.server.States.EC2.Instance(made[0].ID)
		return in.State == ec2.Running
	})
	w.AddNode(made[0].ID)
	return made[0].ID
}

// reads runs the queue source of a cluster until the test ends.
func (e *awsAccount) reads(cluster string) *polltest.World {
	e.t.Helper()
	w := polltest.New(e.t)
	cfg := aws.Config{Region: e.server.Region(), BaseEndpoint: &e.url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")}
	source, err := sqs.New(e.url+"/"+e.server.Account()+"/"+awssetup.QueueName(cluster), sqs.NewClient(cfg), w.Recorder(), sqs.Options{Receivers: 1, Metrics: w.Metrics})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), w.Logger()))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			e.t.Errorf("Run of %s: %v", cluster, err)
		}
	})
	return w
}

// notYetKnown counts the messages about instances that are no node of the cluster.
func notYetKnown(t *testing.T, w *polltest.World) (count float64) {
	t.Helper()
	families, err := w.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "lifeboat_received_messages_total" && l.GetValue() == string(intake.NotYetKnown) {
					count += m.GetCounter().GetValue()
				}
			}
		}
	}
	return count
}

// Both clusters of a topic receive every notice of the account, and each records those of its own
// nodes. After one cluster leaves, the other still receives.
func TestClustersOfTopicRecordTheirOwnNodes(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	worlds := map[string]*polltest.World{}
	for _, cluster := range []string{"a", "b"} {
		e.want(e.awsFor(cluster, "setup", "--shared-topic", sharedTopic, "--yes"), ExitOK)
		worlds[cluster] = e.reads(cluster)
	}
	a, b := worlds["a"], worlds["b"]
	ofA, ofB := e.spotNode(a), e.spotNode(b)
	interrupt := func(ids ...string) {
		t.Helper()
		if err := e.server.States.EC2.Interrupt(ids, ec2.InterruptOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func(w *polltest.World, id string) func() bool {
		return func() bool { n := w.Notices(id); return len(n) > 0 && n[0].Kind == notice.KindSpotInterruption }
	}
	interrupt(ofA, ofB)
	a.Until("cluster a has recorded its node", recorded(a, ofA))
	b.Until("cluster b has recorded its node", recorded(b, ofB))
	// Each queue also receives the notice of the other cluster's node.
	for cluster, foreign := range map[string]string{"a": ofB, "b": ofA} {
		w := worlds[cluster]
		w.Until("cluster "+cluster+" has received the other notice", func() bool { return notYetKnown(t, w) > 0 })
		if got := w.Notices(foreign); got != nil {
			t.Errorf("cluster %s has recorded a node of the other: %+v", cluster, got)
		}
	}

	e.want(e.awsFor("a", "destroy", "--yes"), ExitOK)
	later := e.spotNode(b)
	interrupt(later)
	b.Until("the cluster that stays has recorded its node", recorded(b, later))
}
