package warmpool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// lifeboat follows Lifeboat: it creates a group with its hook, and the pool once the hook exists.
// An agent runs before the kubelet.
type lifeboat struct {
	// silent agents complete no hooks.
	silent bool
}

// make observes, plans and applies until nothing is left to do, as the NodeGroup loop does.
func (lifeboat) make(ctx context.Context, w *world, g group) error {
	least, most, warm := g.size, g.size+g.warm, g.warm
	object := &v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: g.name}, Spec: v1beta1.NodeGroupSpec{
		Management: v1beta1.ManageAll, MinSize: &least, MaxSize: &most, Subnets: w.subnets(),
		LaunchTemplate: &v1beta1.LaunchTemplate{Name: templateName, Version: "$Default"},
	}}
	if warm > 0 {
		object.Spec.WarmPool = &v1beta1.WarmPool{State: "Stopped", MinSize: warm}
	}
	if err := w.kube.Create(ctx, object.DeepCopy()); err != nil {
		return err
	}
	wanted, api := nodegroup.Want(object, "field"), nodegroup.NewAPI(w.config(&network{w: w, handler: w.cloud.Handler()}))
	var err error
	for range 100 {
		var seen nodegroup.Observed
		if seen, err = api.Observe(ctx, g.name, time.Now()); err == nil {
			plan := nodegroup.Diff(wanted, seen, nodegroup.History{})
			if len(plan.Steps) == 0 && len(plan.Held) == 0 {
				return nil
			}
			for _, step := range plan.Steps {
				if err = api.Apply(ctx, wanted, step); err != nil {
					break // the next pass observes again
				}
			}
		}
		sleep.For(ctx, w.between(time.Second, 10*time.Second))
	}
	return fmt.Errorf("making %s: not done after 100 passes: %w", g.name, err)
}

const bootstrap = "bootstrap"

// boot runs the agent as its systemd unit does.
func (l lifeboat) boot(ctx context.Context, m *machine) {
	gate := &boottest.Memory{}
	_ = bootagent.New(bootagent.Options{ // Run returns nil at the power off
		Settings: bootagent.Settings{Prepare: []string{bootstrap}, NoAnswer: l.silent},
		Metadata: func() bootagent.Metadata { return metadata.NewClientOver(aws.Config{}, doer{m.metadata}) },
		Connect: func(context.Context) (bootagent.AutoScaling, error) {
			return bootagent.NewAutoScaling(m.w.config(m.cloud)), nil
		},
		Node: m.node, Run: m.run,
		Remove: func(string) error { return nil },
		State:  &m.files, Gate: gate,
		BootID: func() (string, error) {
			in, ok := m.w.cloud.States.EC2.Instance(m.id)
			if !ok {
				return "", errors.New("no such instance")
			}
			return in.BootID, nil
		},
		Dice: func() float64 { return float64(m.w.between(0, time.Second-1)) / float64(time.Second) },
	}).Run(ctx)
}

// node returns the machine's node as its kubelet reports it.
func (m *machine) node(context.Context, string, string) bootagent.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.metadata.isDown():
		return bootagent.Node{Trouble: errDown.Error()}
	case m.kubelet == nil:
		return bootagent.Node{}
	}
	return bootagent.Node{Name: m.nodeName(), Ready: time.Since(m.since) >= joinsIn, Heartbeat: time.Now()}
}

// run simulates the commands of the agent's defaults, and the setup command.
func (m *machine) run(ctx context.Context, command []string) (string, error) {
	switch said := strings.Join(command, " "); {
	case strings.Contains(said, bootstrap):
		if !m.setUp(ctx) {
			return "", errors.New("the power went off")
		}
	case strings.Contains(said, "is-active"):
		if !m.hasKubelet() {
			return "inactive", errors.New("exit status 3")
		}
	case strings.Contains(said, "start kubelet"):
		m.startKubelet()
	case strings.Contains(said, "stop kubelet"):
		m.stopKubelet()
	default:
		return "", fmt.Errorf("unexpected command %q", said)
	}
	return "", nil
}

// doer adapts the network to the SDK's HTTP client interface.
type doer struct{ *network }

// Do implements the SDK's HTTPClient.
func (d doer) Do(r *http.Request) (*http.Response, error) { return d.RoundTrip(r) }
