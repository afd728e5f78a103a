package machines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

const (
	// retryAfter is when a step that failed is tried again.
	retryAfter = time.Second
	// fullPassInterval is the interval of a full pass without known changes: a machine may have ended
	// without a notification.
	fullPassInterval = 10 * time.Second
	// shutdownPoll is the polling interval of a machine that shuts down.
	shutdownPoll = 500 * time.Millisecond
)

// Cloud holds the instances; *ec2.State is one.
type Cloud interface {
	Instances() []ec2.Instance
	Subnets() []ec2.Subnet
	Subscribe(func(ec2.Change)) (cancel func())
	// Halted reports that the operating system of an instance has shut down.
	Halted(instanceID string)
}

// Machine is an instance with its Node.
type Machine struct {
	ec2.Instance
	Node *corev1.Node // nil: there is none
}

// Hardware runs machines.
type Hardware interface {
	// Boot returns the boot id of a running machine; false: it does not run.
	Boot(m Machine) (id string, on bool)
	// Start gives it power. Its kubelet registers the Node register, if there is none. It returns
	// before that is done.
	Start(ctx context.Context, m Machine, register *corev1.Node) error
	// Restart reboots it.
	Restart(ctx context.Context, m Machine, register *corev1.Node) error
	// Shutdown makes the operating system shut down, which stops the pods, and reports whether it
	// has halted. It does not block, and is called again until it has.
	Shutdown(ctx context.Context, m Machine) (done bool, err error)
	// Cut cuts the power.
	Cut(ctx context.Context, m Machine) error
}

// Options are the optional settings.
type Options struct {
	// BootDelay returns the time from the launch of an instance to Start, by its id. Nil: none.
	BootDelay func(instanceID string) time.Duration
	// Region is the region of the instances.
	Region string
	// Running receives, on every pass, the instances with power and a Node, and the Node's name,
	// except those with TagNoAgent. It must not block. It may be nil.
	Running func(nodes map[string]string)
	// Log receives every step. Nil disables logs.
	Log *slog.Logger
}

// Operator keeps the machines of a cluster in the state of a cloud's instances.
type Operator struct {
	cloud    Cloud
	client   kubernetes.Interface
	hardware Hardware
	opts     Options
	zoneIDs  map[string]string
}

// New makes an operator; Run runs it.
func New(cloud Cloud, client kubernetes.Interface, hardware Hardware, opts Options) *Operator {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.BootDelay == nil {
		opts.BootDelay = func(string) time.Duration { return 0 }
	}
	zoneIDs := map[string]string{}
	for _, s := range cloud.Subnets() {
		zoneIDs[s.Zone] = s.ZoneID
	}
	return &Operator{cloud: cloud, client: client, hardware: hardware, opts: opts, zoneIDs: zoneIDs}
}

// Run reconciles until ctx is done.
func (o *Operator) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	trigger := func() {
		select {
		case changed <- struct{}{}:
		default: // a change is queued already
		}
	}
	cancel := o.cloud.Subscribe(func(ec2.Change) { trigger() })
	defer cancel()
	nodes, stop, err := o.watchNodes(ctx, trigger)
	if err != nil && ctx.Err() != nil {
		return nil // it was stopped before it had begun
	}
	if err != nil {
		return err
	}
	defer stop()

	o.opts.Log.Info("operating machines", "instances", len(o.cloud.Instances()))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer.C:
		}
		wake, err := o.pass(ctx, nodes)
		if err != nil && ctx.Err() == nil {
			o.opts.Log.Warn("step failed, retrying", "after", retryAfter, "err", err)
		}
		timer.Reset(max(0, time.Until(earlier(wake, time.Now().Add(fullPassInterval)))))
	}
}

func (o *Operator) watchNodes(ctx context.Context, trigger func()) (listers.NodeLister, func(), error) {
	factory := informers.NewSharedInformerFactory(o.client, 0)
	nodes := factory.Core().V1().Nodes()
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { trigger() },
		UpdateFunc: func(any, any) { trigger() },
		DeleteFunc: func(any) { trigger() },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watching nodes: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	stop := func() { cancel(); factory.Shutdown() }
	if !cache.WaitForCacheSync(ctx.Done(), nodes.Informer().HasSynced) {
		stop()
		return nil, nil, fmt.Errorf("watching nodes: %w", context.Cause(ctx))
	}
	return nodes.Lister(), stop, nil
}

// pass reconciles once.
func (o *Operator) pass(ctx context.Context, lister listers.NodeLister) (time.Time, error) {
	now := time.Now()
	nodes, err := lister.List(labels.Everything())
	if err != nil {
		return now.Add(retryAfter), fmt.Errorf("listing nodes: %w", err)
	}
	v := view{Now: now, BootDelay: o.opts.BootDelay, Instances: o.cloud.Instances(), Nodes: nodes, Boot: o.hardware.Boot}
	if o.opts.Running != nil {
		o.opts.Running(running(v))
	}
	steps, wake := plan(v)
	var errs []error
	for _, st := range steps {
		if err := o.do(ctx, st); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", st.Act, st.Machine.ID, err))
			wake = earlier(wake, now.Add(retryAfter))
			continue
		}
		if st.Act == down {
			continue // it is polled until it has halted
		}
		o.opts.Log.Info("machine: "+string(st.Act), "instance", st.Machine.ID, "name", st.Machine.PrivateDNSName)
	}
	return wake, errors.Join(errs...)
}

func (o *Operator) do(ctx context.Context, st step) error {
	switch st.Act {
	case down:
		done, err := o.hardware.Shutdown(ctx, st.Machine)
		if done {
			o.cloud.Halted(st.Machine.ID)
		}
		return err
	case halted:
		o.cloud.Halted(st.Machine.ID)
		return nil
	case cut:
		return o.hardware.Cut(ctx, st.Machine)
	case remove:
		err := o.client.CoreV1().Nodes().Delete(ctx, st.Machine.Node.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(st.Machine.Node.UID)),
		})
		return ignoreGone(err)
	}
	node, err := Node(st.Machine.Instance, Where{Region: o.opts.Region, ZoneID: o.zoneIDs[st.Machine.Zone]})
	if err != nil {
		return err
	}
	if st.Act == restart {
		return o.hardware.Restart(ctx, st.Machine, node)
	}
	return o.hardware.Start(ctx, st.Machine, node)
}

// ignoreGone treats a deleted object, or one that was replaced, as success.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
