package warmpool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// world is an AWS account with groups, the machines of its instances, and random faults between
// them.
type world struct {
	t     *testing.T
	cloud *emulator.Server
	kube  client.Client
	// way sets machines up and creates groups.
	way way

	mu       sync.Mutex
	chance   *rand.Rand
	machines map[string]*machine
	running  sync.WaitGroup
}

// way is one tool that runs a cluster's nodes in groups.
type way interface {
	// make creates a group, whose launch hook is called lifeboat-launch.
	make(ctx context.Context, w *world, g group) error
	// boot runs on a machine from power on until ctx is done.
	boot(ctx context.Context, m *machine)
}

// group describes a group to create.
type group struct {
	name string
	size int32
	warm int32 // instances in the warm pool; 0: no pool
}

// The emulated cloud's timing, close to that of AWS.
func pace() ec2.Timing {
	return ec2.Timing{PendingFor: 12 * time.Second, StoppingFor: 8 * time.Second, ShutdownFor: 15 * time.Second, PowerOffAfter: 6 * time.Second}
}

// newWorld must be called within a bubble of synctest.
func newWorld(t *testing.T, seed uint64, way way) *world {
	t.Helper()
	cloud, err := emulator.New(emulator.Options{Timing: pace()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cloud: cloud, kube: newKube(), way: way, chance: rand.New(rand.NewPCG(seed, seed)), machines: map[string]*machine{}}
	cloud.States.AutoScaling.SetTiming(autoscaling.Timing{
		Evaluate: time.Second, Launch: 10 * time.Second, Settle: 2 * time.Second, Retry: 10 * time.Second, Deregister: 5 * time.Second,
	})
	cloud.States.AutoScaling.SetConsistency(autoscaling.Consistency{
		Lag: w.between(0, 6*time.Second), TargetAfter: w.between(0, 40*time.Second), ActionAfter: w.between(0, 5*time.Second),
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		w.running.Wait()
	})
	w.running.Go(func() { cloud.Work(ctx) })
	stop := cloud.States.EC2.Subscribe(func(c ec2.Change) { w.handleChange(ctx, c) })
	t.Cleanup(stop)
	return w
}

// between returns a random time within bounds.
func (w *world) between(least, most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return least + time.Duration(w.chance.Int64N(int64(most-least)+1))
}

// often returns true with probability p.
func (w *world) often(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance.Float64() < p
}

// config connects the AWS SDK to the cloud through a network.
func (w *world) config(n *network) aws.Config {
	return emulatortest.ConfigOver(w.cloud, n)
}

// client makes calls that only the usual latency delays.
func (w *world) client() *awsas.Client {
	return awsas.NewFromConfig(w.config(&network{w: w, handler: w.cloud.Handler()}))
}

// network carries requests to a handler in this process. Each request takes some time, and none
// arrives while the network is down.
type network struct {
	w       *world
	handler http.Handler
	fast    bool // the connection of the machine itself

	mu   sync.Mutex
	down time.Time // time at which it is up again
}

var errDown = errors.New("connect: network is unreachable")

// restart takes the network down for a while.
func (n *network) restart(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = time.Now().Add(d)
}

func (n *network) isDown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.down)
}

// RoundTrip implements http.RoundTripper. A request in flight when the network goes down may or may
// not arrive; its response is lost.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	there, back := time.Millisecond, time.Duration(0)
	if !n.fast {
		there, back = n.w.between(20*time.Millisecond, 800*time.Millisecond), n.w.between(10*time.Millisecond, 400*time.Millisecond)
	}
	if n.isDown() || !sleep.For(r.Context(), there) || n.isDown() {
		return nil, errors.Join(errDown, r.Context().Err())
	}
	reply, err := emulatortest.Direct{Handler: n.handler}.RoundTrip(r)
	if !sleep.For(r.Context(), back) || n.isDown() {
		return nil, errors.Join(errDown, r.Context().Err())
	}
	return reply, err
}

// template creates the launch template that all groups use.
func (w *world) template() {
	w.t.Helper()
	if err := makeTemplate(w.t.Context(), w); err != nil {
		w.t.Fatal(fmt.Errorf("making the launch template: %w", err))
	}
}
