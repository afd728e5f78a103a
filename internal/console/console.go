package console

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
)

// Options configure a console.
type Options struct {
	// Client lists and watches Lifeboat's objects.
	Client client.WithWatch
	// Cluster is the name of the cluster, and Program the name of the CLI in commands.
	Cluster, Program string
	// Timeout limits the time of one list; 0 means no limit.
	Timeout time.Duration
	Now     func() time.Time
	// Health checks the installation. It is called while a page is open.
	Health func(context.Context) view.Health
	// Nodes lists the names of the nodes, and Plan predicts an interruption of one.
	Nodes func(context.Context) ([]string, error)
	Plan  func(context.Context, PlanRequest) (view.Plan, error)
	// Hosts are the values of the header Host that the console answers. With AnyHost it answers
	// all: behind a proxy, that checks who asks.
	Hosts   []string
	AnyHost bool
}

// PlanRequest is a node and the notice that it would get. Without a kind it is the current
// interruption, or a spot interruption.
type PlanRequest struct{ Node, Kind, In, Code string }

const (
	// healthInterval is the time between two checks of the installation.
	healthInterval = 30 * time.Second
	// closing is how long open requests have when the console ends.
	closing = time.Second
)

// Console is a web server with its copy of Lifeboat's objects.
type Console struct {
	o     Options
	state *state
}

// New returns a console that is not started.
func New(o Options) *Console { return &Console{o: o, state: newState(o)} }

// Serve serves the page until ctx ends.
func (c *Console) Serve(ctx context.Context, l net.Listener) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.state.follow(ctx, &parts)
	parts.Go(func() { c.checkHealth(ctx) })
	server := &http.Server{
		Handler: c.Handler(), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	parts.Go(func() {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// checkHealth checks the installation while a page is open.
func (c *Console) checkHealth(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var checked time.Time
	for {
		if c.state.watched() && c.o.Now().Sub(checked) > healthInterval {
			checked = c.o.Now()
			health := c.o.Health(ctx)
			health.Checked = view.At(checked)
			c.state.setHealth(health)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// follow starts the watches.
func (s *state) follow(ctx context.Context, parts *sync.WaitGroup) {
	for _, w := range []watcher{
		{what: "interruptions", list: &v1beta1.InterruptionList{}, object: &v1beta1.Interruption{}, set: s.setInterruption, replace: s.replaceInterruptions, state: s},
		{what: "node groups", list: &v1beta1.NodeGroupList{}, object: &v1beta1.NodeGroup{}, set: s.setGroup, replace: s.replaceGroups, state: s},
		{what: "policies", list: &v1beta1.InterruptionPolicyList{}, object: &v1beta1.InterruptionPolicy{}, set: s.setPolicy, replace: s.replacePolicies, state: s},
	} {
		parts.Go(func() { w.run(ctx) })
	}
}
