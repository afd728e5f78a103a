//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// agent has the token of the agent of a node. It may have that node drained, and nothing else.
func (r *redTeam) agent(name string, stolen ec2.Instance) attacker {
	a := stolenAgent{r, stolen}
	return attacker{name, []act{
		{name: "writes random notices about its node", do: func(ctx context.Context, rnd *rand.Rand) error {
			return a.writeNodeNotice(ctx, a.in.PrivateDNSName, a.in.ID, randomNotices(rnd, 1+rnd.IntN(8)))
		}},
		{name: "writes about another instance", do: func(ctx context.Context, rnd *rand.Rand) error {
			victim := r.bystanders[rnd.IntN(len(r.bystanders))]
			return a.writeNodeNotice(ctx, a.in.PrivateDNSName, victim.ID, randomNotices(rnd, 2))
		}},
		{name: "writes about an instance without a node", do: func(ctx context.Context, rnd *rand.Rand) error {
			return a.writeNodeNotice(ctx, a.in.PrivateDNSName, unknown, randomNotices(rnd, 2))
		}},
		{name: "writes about another node", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			victim := r.bystanders[rnd.IntN(len(r.bystanders))]
			return a.writeNodeNotice(ctx, victim.PrivateDNSName, victim.ID, randomNotices(rnd, 1))
		}},
		{name: "writes nine notices", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return a.writeNodeNotice(ctx, a.in.PrivateDNSName, a.in.ID, randomNotices(rnd, 9))
		}},
		{name: "writes a kind that metadata does not have", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			all := randomNotices(rnd, 1)
			all[0].Kind = []string{"InstanceStatus", "InstanceStateChange", "HealthIssue", "*"}[rnd.IntN(4)]
			return a.writeNodeNotice(ctx, a.in.PrivateDNSName, a.in.ID, all)
		}},
		{name: "writes a large notice", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			all := randomNotices(rnd, 1)
			all[0].Description = strings.Repeat("x", 1<<20)
			return a.writeNodeNotice(ctx, a.in.PrivateDNSName, a.in.ID, all)
		}},
		{name: "creates an Interruption", refused: true, do: a.withAgent(func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, r.forgedRecord("imds"))
		})},
		{name: "changes the status of its NodeNotice", refused: true, do: a.withAgent(func(ctx context.Context, c client.Client) error {
			n := &v1beta1.NodeNotice{ObjectMeta: metav1.ObjectMeta{Name: a.in.PrivateDNSName}}
			return c.Status().Patch(ctx, n, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`)))
		})},
		{name: "evicts a pod", refused: true, do: a.withAgent(func(ctx context.Context, c client.Client) error {
			pods := r.podsOn(r.bystanders[0])
			if len(pods) == 0 {
				return errNothingToDo
			}
			return c.Delete(ctx, &pods[0])
		})},
		{name: "patches a node", refused: true, do: a.withAgent(func(ctx context.Context, c client.Client) error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.in.PrivateDNSName}}
			return c.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":false}}`)))
		})},
	}}
}

// stolenAgent writes as the agent of a node.
type stolenAgent struct {
	*redTeam
	in ec2.Instance
}

// withAgent calls f with the client of the stolen node's agent. A token ends with the Node, so each
// attempt gets a new one, as a restarted pod does.
func (r stolenAgent) withAgent(f func(context.Context, client.Client) error) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, _ *rand.Rand) error {
		path, err := r.AgentKubeconfig(ctx, r.in.PrivateDNSName)
		if err != nil {
			return errNothingToDo // the Node is not there at the moment
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return err
		}
		c, err := client.New(config, client.Options{Scheme: r.client.Scheme()})
		if err != nil {
			return err
		}
		return f(ctx, c)
	}
}

// writeNodeNotice writes a NodeNotice as the stolen node's agent.
func (r stolenAgent) writeNodeNotice(ctx context.Context, name, instance string, notices []v1beta1.MetadataNotice) error {
	node := &corev1.Node{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return errNothingToDo
	}
	return r.withAgent(func(ctx context.Context, c client.Client) error {
		n := &v1beta1.NodeNotice{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1beta1.NodeNoticeSpec{InstanceID: instance, NodeUID: string(node.UID), Notices: notices},
		}
		err := c.Create(ctx, n)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		var before v1beta1.NodeNotice
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &before); err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Spec = n.Spec
		return c.Patch(ctx, after, client.MergeFrom(&before))
	})(ctx, nil)
}

// randomNotices are n notices that the CRD accepts, with random times.
func randomNotices(rnd *rand.Rand, n int) []v1beta1.MetadataNotice {
	all := make([]v1beta1.MetadataNotice, n)
	for i := range all {
		years := []int{-900, 0, 0, 0, 1, 6000}
		at := metav1.NewTime(time.Now().AddDate(years[rnd.IntN(len(years))], 0, 0).Add(time.Duration(rnd.IntN(600)-300) * time.Second))
		all[i] = v1beta1.MetadataNotice{
			ID: fmt.Sprint("imds/", rnd.Uint64()), Subject: fmt.Sprint("s", rnd.IntN(4)), IssueTime: &at, Withdrawn: rnd.IntN(4) == 0,
		}
		switch rnd.IntN(4) {
		case 0:
			all[i].Kind, all[i].Deadline, all[i].InstanceAction = "SpotInterruption", &at, "terminate"
		case 1:
			all[i].Kind, all[i].Deadline, all[i].EventTypeCode = "ScheduledChange", &at, "instance-stop"
		case 2:
			all[i].Kind = "RebalanceRecommendation"
		default:
			all[i].Kind, all[i].EventTypeCode = "AutoScalingTermination", "Terminated"
		}
	}
	return all
}
