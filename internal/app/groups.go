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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption"
	"github.com/lifeboat-dev/lifeboat/internal/controller/launch"
	groupcontroller "github.com/lifeboat-dev/lifeboat/internal/controller/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/quota"
)

// groups is what knows Auto Scaling groups, and answers them. All of it shares one
// limit of calls, and one look at the groups.
type groups struct {
	*groupwatch.Watcher
	lifecycle cloud.Lifecycle
	api       *nodegroup.API
	// forInterruptions and forGroups yield the names of groups that have changed.
	forInterruptions, forGroups chan event.TypedGenericEvent[string]
}

// watchGroups makes it, or returns nil where Auto Scaling is not listened to.
func watchGroups(mgr ctrl.Manager, config aws.Config, c Config) (*groups, error) {
	if !slices.Contains(c.Sources, notice.SourceAutoScaling) {
		return nil, nil
	}
	limit := quota.New(0, 0)
	watcher, err := groupwatch.New(groupwatch.Options{
		API: groupwatch.NewAPI(config), Reader: mgr.GetClient(), Nodes: nodeindex.ListCached(mgr.GetCache()), Names: declaredGroups(mgr.GetClient()),
		Interval: c.AutoScalingInterval, Quota: limit, Registerer: metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	g := &groups{
		Watcher: watcher, lifecycle: cloudaws.NewLifecycle(config, limit), api: nodegroup.NewAPI(config).Share(limit),
		forInterruptions: make(chan event.TypedGenericEvent[string], 1024), forGroups: make(chan event.TypedGenericEvent[string], 1024),
	}
	watcher.Subscribe(func(group string, _ []string) {
		g.tell(g.forInterruptions, group)
		g.tell(g.forGroups, group)
	})
	return g, mgr.Add(watcher)
}

// tell puts a group on a channel. Where that is full its reader has enough to do,
// and looks at all by the clock as well.
func (g *groups) tell(c chan<- event.TypedGenericEvent[string], group string) {
	select {
	case c <- event.TypedGenericEvent[string]{Object: group}:
	default:
	}
}

// declaredGroups returns the names of the groups that NodeGroups stand for.
func declaredGroups(reader client.Reader) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var list v1alpha1.NodeGroupList
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

// addTo has the loop over Interruptions know of groups.
func (g *groups) addTo(o *interruption.Options, c Config) {
	if g != nil {
		o.Groups, o.Lifecycle, o.Hooks, o.GroupChanges = g.Watcher, g.lifecycle, c.LifecycleHooks, g.forInterruptions
	}
}

// news has the groups looked at of which a message has come.
func (g *groups) news() func(group string) {
	if g == nil {
		return nil
	}
	return g.Hint
}

// addLoops adds the loops that see instances into service, and that look after
// NodeGroups.
func (g *groups) addLoops(mgr ctrl.Manager, nodes *nodeindex.Index, recorder events.EventRecorder, c Config) error {
	if g == nil {
		return nil
	}
	sweep, err := launch.New(launch.Options{
		Client: mgr.GetClient(), Nodes: nodeindex.ListCached(mgr.GetCache()), Pods: mgr.GetAPIReader(), Groups: g.Watcher, Lifecycle: g.lifecycle, Hooks: c.LifecycleHooks,
		Events: recorder, Changed: func(group string) { g.tell(g.forGroups, group) }, Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	g.Subscribe(sweep.News)
	cluster, api := c.tagging(g.api)
	declared, err := groupcontroller.New(groupcontroller.Options{
		Client: mgr.GetClient(), Nodes: nodes, Watch: g.Watcher, AWS: api, Book: sweep, Events: recorder,
		Cluster: cluster, Clock: time.Now, Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return errors.Join(sweep.Register(mgr), declared.Register(mgr, g.forGroups))
}

// tagging is the cluster's name for tags, and what changes groups with it. Where the
// name is only guessed no tag gets it, and no group is made without the tag: its
// instances would not be the cluster's, in IAM's eyes too.
func (c Config) tagging(api groupcontroller.AWS) (cluster string, _ groupcontroller.AWS) {
	if !c.guessed {
		return c.ClusterName, api
	}
	return "", unnamed{api, c.ClusterName}
}

// unnamed changes groups of a cluster whose name is only guessed.
type unnamed struct {
	groupcontroller.AWS
	guess string
}

// Apply does a step, but makes no group unless the NodeGroup itself says whose it is.
func (u unnamed) Apply(ctx context.Context, w nodegroup.Wanted, s nodegroup.Step) error {
	if s.Verb != nodegroup.CreateGroup {
		return u.AWS.Apply(ctx, w, s)
	}
	for key := range w.Spec.Tags {
		if strings.HasPrefix(key, nodegroup.TagCluster) {
			return u.AWS.Apply(ctx, w, s)
		}
	}
	return fmt.Errorf("creating group %s: the cluster's name is not known for sure, which its tag %sNAME has to have (the queue's name tells %s): %s", w.Group, nodegroup.TagCluster, u.guess, nameIt)
}
