package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/instancelaunch"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption"
	"github.com/lifeboat-dev/lifeboat/internal/controller/lifecyclehook"
	groupcontroller "github.com/lifeboat-dev/lifeboat/internal/controller/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// groups contains the parts for Auto Scaling groups. They share one rate limit
// and one cache of the groups.
type groups struct {
	*groupcache.Watcher
	lifecycle cloud.Lifecycle
	api       *nodegroup.API
	// forInterruptions, forHooks and forGroups yield the names of groups that have changed.
	forInterruptions, forHooks, forGroups chan event.TypedGenericEvent[string]
}

// watchGroups creates the parts, or returns nil if the Auto Scaling source is
// disabled.
func watchGroups(mgr ctrl.Manager, config aws.Config, c Config) (*groups, error) {
	if !slices.Contains(c.Sources, notice.SourceAutoScaling) {
		return nil, nil
	}
	limit := ratelimit.New(0, 0)
	watcher, err := groupcache.New(groupcache.Options{
		API: groupcache.NewAPI(config), Reader: mgr.GetClient(), Nodes: nodeindex.ListCached(mgr.GetCache()), Names: declaredGroups(mgr.GetClient()),
		Interval: c.AutoScalingInterval, Quota: limit, Registerer: metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	g := &groups{
		Watcher: watcher, lifecycle: cloudaws.NewLifecycle(config, limit), api: nodegroup.NewAPI(config).Share(limit),
		forInterruptions: make(chan event.TypedGenericEvent[string], 1024), forHooks: make(chan event.TypedGenericEvent[string], 1024),
		forGroups: make(chan event.TypedGenericEvent[string], 1024),
	}
	watcher.Subscribe(func(group string, _ []string) {
		g.enqueue(g.forInterruptions, group)
		g.enqueue(g.forHooks, group)
		g.enqueue(g.forGroups, group)
	})
	return g, mgr.Add(watcher)
}

// enqueue queues a group without blocking. If the channel is full, its reader
// is busy and also requeues all groups periodically.
func (g *groups) enqueue(c chan<- event.TypedGenericEvent[string], group string) {
	select {
	case c <- event.TypedGenericEvent[string]{Object: group}:
	default:
	}
}

// declaredGroups returns the names of the groups that NodeGroups manage.
func declaredGroups(reader client.Reader) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var list v1beta1.NodeGroupList
		if err := reader.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing NodeGroups: %w", err)
		}
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, nodegroup.Name(&list.Items[i]))
		}
		return names, nil
	}
}

// addTo passes the groups to the Interruption controller.
func (g *groups) addTo(o *interruption.Options, c Config) {
	if g != nil {
		o.Groups, o.Detacher, o.Hooks, o.GroupChanges = g.Watcher, g.lifecycle, c.LifecycleHooks, g.forInterruptions
	}
}

// refresher returns a callback that requests a read of a group after a message
// about it.
func (g *groups) refresher() func(group string) {
	if g == nil {
		return nil
	}
	return g.RequestRefresh
}

// addLoops adds the controllers for lifecycle hooks, launching instances and NodeGroups.
func (g *groups) addLoops(mgr ctrl.Manager, nodes *nodeindex.Index, recorder events.EventRecorder, c Config) error {
	if g == nil {
		return nil
	}
	sweep, err := instancelaunch.New(instancelaunch.Options{
		Client: mgr.GetClient(), Nodes: nodeindex.ListCached(mgr.GetCache()), Pods: mgr.GetAPIReader(), Groups: g.Watcher, Lifecycle: g.lifecycle, Hooks: c.LifecycleHooks,
		Events: recorder, Changed: func(group string) { g.enqueue(g.forGroups, group) }, Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	g.Subscribe(sweep.News)
	cluster, api := c.tagging(g.api)
	declared, err := groupcontroller.New(groupcontroller.Options{
		Client: mgr.GetClient(), Nodes: nodes, Watch: g.Watcher, AWS: api, Tracker: sweep, Events: recorder,
		Cluster: cluster, Clock: time.Now, Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	hooks := lifecyclehook.New(lifecyclehook.Options{
		Client: mgr.GetClient(), Nodes: nodes, Members: membership.Reader{Client: mgr.GetClient(), Groups: g.Watcher, Hooks: c.LifecycleHooks},
		Hooks: g.lifecycle, Events: recorder, Clock: time.Now,
	})
	return errors.Join(sweep.Register(mgr), declared.Register(mgr, g.forGroups), hooks.Register(mgr, g.forHooks))
}

// tagging returns the cluster name for tags and the API for changes. If the
// name is only a guess, Lifeboat writes no such tag and creates no group:
// without the tag IAM would not count the instances as the cluster's.
func (c Config) tagging(api groupcontroller.AWS) (cluster string, _ groupcontroller.AWS) {
	if !c.guessed {
		return c.ClusterName, api
	}
	return "", guessedCluster{api, c.ClusterName}
}

// guessedCluster changes groups of a cluster whose name is a guess.
type guessedCluster struct {
	groupcontroller.AWS
	guess string
}

// Apply performs a step, but creates a group only if the NodeGroup declares the
// cluster's tag.
func (u guessedCluster) Apply(ctx context.Context, w nodegroup.Wanted, s nodegroup.Step) error {
	if s.Verb != nodegroup.CreateGroup {
		return u.AWS.Apply(ctx, w, s)
	}
	for key := range w.Spec.Tags {
		if strings.HasPrefix(key, nodegroup.TagCluster) {
			return u.AWS.Apply(ctx, w, s)
		}
	}
	return fmt.Errorf("creating group %s: the group needs the tag %sNAME, but the cluster name is uncertain (the queue name suggests %s): %s", w.Group, nodegroup.TagCluster, u.guess, clusterNameAdvice)
}
