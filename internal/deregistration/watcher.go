// Package deregistration reads whether load balancers still send new connections to instances. It
// asks only about instances that a drain waits for, and only while it waits.
package deregistration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// +kubebuilder:rbac:groups=elbv2.k8s.aws,resources=targetgroupbindings,verbs=list

const (
	// interval is between two reads while a drain waits.
	interval = 3 * time.Second
	// callTimeout bounds one call: without an answer it must not hold a drain.
	callTimeout = 10 * time.Second
	// callsPerSecond and burst limit the calls. AWS publishes no limit for DescribeTargetHealth.
	callsPerSecond, burst = 5, 10
)

// bindings are the objects in which the AWS Load Balancer Controller keeps its target groups
// (kubernetes-sigs/aws-load-balancer-controller docs/guide/targetgroupbinding).
var bindings = schema.GroupVersionKind{Group: "elbv2.k8s.aws", Version: "v1beta1", Kind: "TargetGroupBindingList"}

// Health reads the targets of a target group; *elasticloadbalancingv2.Client is one.
type Health interface {
	DescribeTargetHealth(context.Context, *elb.DescribeTargetHealthInput, ...func(*elb.Options)) (*elb.DescribeTargetHealthOutput, error)
}

// Options are what a Watcher needs.
type Options struct {
	// Reader reads TargetGroupBindings past the cache.
	Reader client.Reader
	Health Health
	// Wake is called with the id of an instance whose state changed.
	Wake func(instanceID string)
}

// State is what is known about an instance.
type State struct {
	// Known is set once AWS has answered.
	Known bool
	// Groups are the ARNs of the target groups that may still send it new connections.
	Groups []string
	// Err is why AWS or the API server did not answer the last time. It is asked again, except after
	// ErrRefused.
	Err error
}

// ErrRefused is the error of a read that fails in the same way each time, until a person grants the
// permission.
var ErrRefused = errors.New("refused")

// Settled reports whether the state is not read again: no target group sends new connections, or
// reading is refused.
func (s State) Settled() bool {
	return errors.Is(s.Err, ErrRefused) || s.Err == nil && s.Known && len(s.Groups) == 0
}

// Names are the names of Groups, as a list for users.
func (s State) Names() string {
	var names []string
	for _, arn := range s.Groups {
		names = append(names, nameOf(arn))
	}
	return strings.Join(names, ", ")
}

// Watcher reads the states of instances in the background. It is safe for concurrent use.
type Watcher struct {
	Options
	limit  *ratelimit.Limiter
	wanted chan struct{}

	mu    sync.Mutex
	asked map[string]*entry // by instance
}

// entry is an instance that a drain waits for until a time.
type entry struct {
	until time.Time
	state State
}

// New returns a Watcher.
func New(o Options) *Watcher {
	return &Watcher{Options: o, limit: ratelimit.New(callsPerSecond, burst), wanted: make(chan struct{}, 1), asked: map[string]*entry{}}
}

// State returns what is known about an instance, and has it read until a time. Another time begins
// another wait, for which the earlier state does not count.
func (w *Watcher) State(instanceID string, until time.Time) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.asked[instanceID]
	if e == nil || !e.until.Equal(until) {
		e = &entry{until: until}
		w.asked[instanceID] = e
		select {
		case w.wanted <- struct{}{}:
		default:
		}
	}
	return e.state
}

// Start reads until ctx ends. It makes no request while no drain waits.
func (w *Watcher) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wanted:
		}
		for w.read(ctx) {
			if !sleep.For(ctx, interval) {
				return nil
			}
		}
	}
}

// read reads the states of all instances that are waited for, and reports whether there were any.
func (w *Watcher) read(ctx context.Context) bool {
	waiting := w.waiting()
	if len(waiting) == 0 {
		return false
	}
	registered, err := w.registered(ctx, waiting)
	w.mu.Lock()
	var changed []string
	for id, e := range waiting {
		next := State{Known: true, Groups: registered[id]}
		if err != nil {
			next = State{Known: e.state.Known, Groups: e.state.Groups, Err: err}
		}
		if e.state.Settled() != next.Settled() || !slices.Equal(e.state.Groups, next.Groups) {
			changed = append(changed, id)
		}
		e.state = next
	}
	w.mu.Unlock()
	for _, id := range changed {
		w.Wake(id)
	}
	return true
}

// waiting forgets the instances whose time is over, and returns those that are not settled.
func (w *Watcher) waiting() map[string]*entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(w.asked, func(_ string, e *entry) bool { return !now.Before(e.until) })
	waiting := map[string]*entry{}
	for id, e := range w.asked {
		if !e.state.Settled() {
			waiting[id] = e
		}
	}
	return waiting
}

// registered returns, by instance, the target groups that may send it new connections. One call reads
// a whole group: with an id but no port, AWS would look only for the group's own port.
func (w *Watcher) registered(ctx context.Context, waiting map[string]*entry) (map[string][]string, error) {
	arns, err := w.groupsOf(ctx, waiting)
	if err != nil {
		return nil, err
	}
	registered := map[string][]string{}
	for _, arn := range arns {
		targets, err := w.targets(ctx, arn)
		if err != nil {
			return nil, err
		}
		for _, target := range targets {
			if target.Target == nil || target.Target.Id == nil || !receives(target.TargetHealth) {
				continue
			}
			if id := *target.Target.Id; waiting[id] != nil && !slices.Contains(registered[id], arn) {
				registered[id] = append(registered[id], arn)
			}
		}
	}
	return registered, nil
}

// groupsOf returns the target groups to read: all of them for an instance of which nothing is known,
// then only those that it was in. No group gets an instance whose node is cordoned.
func (w *Watcher) groupsOf(ctx context.Context, waiting map[string]*entry) ([]string, error) {
	var arns []string
	for _, e := range waiting {
		if !e.state.Known {
			return w.targetGroups(ctx)
		}
		arns = append(arns, e.state.Groups...)
	}
	slices.Sort(arns)
	return slices.Compact(arns), nil
}

// targets returns the targets of a group; none for a group that is gone.
func (w *Watcher) targets(ctx context.Context, arn string) ([]types.TargetHealthDescription, error) {
	if err := w.limit.Wait(ctx, ratelimit.Ask); err != nil {
		return nil, fmt.Errorf("waiting to describe target group %s: %w", nameOf(arn), err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := w.Health.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &arn})
	var gone *types.TargetGroupNotFoundException
	var refused smithy.APIError
	switch {
	case errors.As(err, &gone):
		return nil, nil
	case errors.As(err, &refused) && refused.ErrorCode() == "AccessDenied":
		return nil, fmt.Errorf("%w to describe the targets of target group %s: %s; lifeboatd's role needs elasticloadbalancing:DescribeTargetHealth (lifeboat aws iam --load-balancers)",
			ErrRefused, nameOf(arn), refused.ErrorCode())
	case err != nil:
		return nil, fmt.Errorf("describing the targets of target group %s: %w", nameOf(arn), err)
	}
	return out.TargetHealthDescriptions, nil
}

// receives reports whether a target may get new connections. A target that drains gets none, and one
// that is unused none at all (ELBv2 API Reference, TargetHealth; User Guide for Application Load
// Balancers, "Deregistration delay").
func receives(h *types.TargetHealth) bool {
	return h == nil || h.State != types.TargetHealthStateEnumDraining && h.State != types.TargetHealthStateEnumUnused
}

// targetGroups returns the ARNs of the target groups with instances as targets. A cluster without the
// kind TargetGroupBinding has none.
func (w *Watcher) targetGroups(ctx context.Context) ([]string, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(bindings)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch err := w.Reader.List(ctx, &list); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w to list TargetGroupBindings: set the chart's value waitForDeregistration.enabled", ErrRefused)
	case err != nil:
		return nil, fmt.Errorf("listing TargetGroupBindings: %w", err)
	}
	var arns []string
	for _, binding := range list.Items {
		arn, _, _ := unstructured.NestedString(binding.Object, "spec", "targetGroupARN")
		kind, _, _ := unstructured.NestedString(binding.Object, "spec", "targetType")
		if arn != "" && cmp.Or(kind, string(types.TargetTypeEnumInstance)) == string(types.TargetTypeEnumInstance) {
			arns = append(arns, arn)
		}
	}
	slices.Sort(arns)
	return slices.Compact(arns), nil
}

// nameOf is the name in the ARN of a target group: arn:…:targetgroup/NAME/ID.
func nameOf(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) == 3 {
		return parts[1]
	}
	return arn
}
