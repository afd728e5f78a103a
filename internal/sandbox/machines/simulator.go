package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/kwok"
)

const (
	defaultBootDelay = 2 * time.Second
	// retryAfter is when a step that failed is tried again.
	retryAfter = time.Second
)

// Cloud is where the machines stand; *ec2.State is one.
type Cloud interface {
	Instances() []ec2.Instance
	Subnets() []ec2.Subnet
	Subscribe(func(ec2.Change)) (cancel func())
}

// Options are what may be left out.
type Options struct {
	// BootDelay is the time from launch to a registered Node; default 2 s.
	BootDelay time.Duration
	// Region is the region of the instances.
	Region string
	// Running hears, on every look, which instances have power and a Node, and the
	// Node's name. It must not block. It may be nil.
	Running func(nodes map[string]string)
	// Log hears of every step. Nil is silence.
	Log *slog.Logger
}

// Simulator keeps the Nodes of a cluster as the instances of a cloud have them.
type Simulator struct {
	cloud   Cloud
	client  kubernetes.Interface
	opts    Options
	zoneIDs map[string]string
}

// New makes a simulator; Run runs it.
func New(cloud Cloud, client kubernetes.Interface, opts Options) *Simulator {
	if opts.BootDelay == 0 {
		opts.BootDelay = defaultBootDelay
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	zoneIDs := map[string]string{}
	for _, s := range cloud.Subnets() {
		zoneIDs[s.Zone] = s.ZoneID
	}
	return &Simulator{cloud: cloud, client: client, opts: opts, zoneIDs: zoneIDs}
}

// Run keeps at it until ctx is done.
func (s *Simulator) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	look := func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
	cancel := s.cloud.Subscribe(func(ec2.Change) { look() })
	defer cancel()
	nodes, stop, err := s.watchNodes(ctx, look)
	if err != nil {
		return err
	}
	defer stop()

	s.opts.Log.Info("simulating machines", "instances", len(s.cloud.Instances()))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer.C:
		}
		wake, err := s.pass(ctx, nodes)
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("step not done, trying again", "after", retryAfter, "err", err)
		}
		if !wake.IsZero() {
			timer.Reset(max(0, time.Until(wake)))
		}
	}
}

func (s *Simulator) watchNodes(ctx context.Context, look func()) (listers.NodeLister, func(), error) {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	nodes := factory.Core().V1().Nodes()
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { look() },
		UpdateFunc: func(any, any) { look() },
		DeleteFunc: func(any) { look() },
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

// pass looks once and does what there is to do.
func (s *Simulator) pass(ctx context.Context, lister listers.NodeLister) (time.Time, error) {
	now := time.Now()
	nodes, err := lister.List(labels.Everything())
	if err != nil {
		return now.Add(retryAfter), fmt.Errorf("listing nodes: %w", err)
	}
	v := view{Now: now, BootDelay: s.opts.BootDelay, Instances: s.cloud.Instances(), Nodes: nodes}
	if s.opts.Running != nil {
		s.opts.Running(running(v))
	}
	steps, wake := plan(v)
	var errs []error
	for _, st := range steps {
		if err := s.do(ctx, st); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", st.Act, st.Instance.ID, err))
			wake = sooner(wake, now.Add(retryAfter))
			continue
		}
		s.opts.Log.Info("machine: "+string(st.Act), "instance", st.Instance.ID, "name", st.Instance.PrivateDNSName)
	}
	return wake, errors.Join(errs...)
}

func (s *Simulator) do(ctx context.Context, st step) error {
	switch st.Act {
	case register:
		return s.register(ctx, st.Instance)
	case lightUp:
		return s.manage(ctx, st.Node, kwok.ManagedValue)
	case goDark:
		return s.manage(ctx, st.Node, nil)
	case restart:
		return s.restart(ctx, st.Instance, st.Node)
	default:
		err := s.client.CoreV1().Nodes().Delete(ctx, st.Node.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(st.Node.UID)),
		})
		return ignoreGone(err)
	}
}

func (s *Simulator) register(ctx context.Context, in ec2.Instance) error {
	node, err := Node(in, Where{Region: s.opts.Region, ZoneID: s.zoneIDs[in.Zone]})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache is behind
	}
	return err
}

// manage sets, or with nil takes away, the label by which kwok plays the node's
// kubelet.
func (s *Simulator) manage(ctx context.Context, n *corev1.Node, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": n.UID, "labels": map[string]any{kwok.ManagedLabel: value},
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreGone(err)
}

// restart shows what a reboot shows: a kubelet that was away, and another boot
// id. kwok finds the Node NotReady and brings it up.
func (s *Simulator) restart(ctx context.Context, in ec2.Instance, n *corev1.Node) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID},
		"status": map[string]any{
			"nodeInfo": map[string]any{"bootID": in.BootID},
			"conditions": []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
				Reason: "KubeletNotReady", Message: "the machine is starting again",
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// ignoreGone takes an object that is gone, or is another one by now, for done.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
