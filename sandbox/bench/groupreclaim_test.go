package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

const (
	// groupBoot is the boot time of a group's instance, from launch or out of the warm pool.
	// groupPrepare is the extra time of its first boot.
	groupBoot, groupPrepare = 20 * time.Second, 40 * time.Second
	groupName               = "web"
)

// groupSide is what replaces a reclaimed spot instance of a group.
type groupSide struct {
	name          string
	lifeboat      bool // false: only the group
	warm          int
	boot, prepare time.Duration
	// rebalances enables the group's Capacity Rebalancing.
	rebalances bool
	// recommended is the time from EC2's rebalance recommendation to its warning. AWS sends the
	// recommendation with the warning at the latest (EC2 User Guide, "EC2 instance rebalance
	// recommendations"), so zero is the worst case.
	recommended time.Duration
}

var groupSides = []groupSide{
	{name: "aws", boot: groupBoot + groupPrepare},
	{name: "aws-rebalance", boot: groupBoot + groupPrepare, rebalances: true},
	{name: "aws-rebalance-early", boot: groupBoot + groupPrepare, rebalances: true, recommended: 3 * time.Minute},
	{name: "lifeboat-cold", lifeboat: true, boot: groupBoot, prepare: groupPrepare},
	{name: "lifeboat-warm", lifeboat: true, boot: groupBoot, prepare: groupPrepare, warm: 1},
}

// BenchmarkGroupReclaim reclaims the only spot instance of an Auto Scaling group, which four pods
// fill. It measures the time until the replacement node is Ready and the disruption of the pods:
// with the group alone, with Capacity Rebalancing, and with Lifeboat, cold and from a warm pool.
// Each runs on its own cluster.
func BenchmarkGroupReclaim(b *testing.B) {
	for _, who := range groupSides {
		b.Run(who.name, func(b *testing.B) {
			after, cost := groupReclaimed(b, who)
			b.Logf("FIGURES %-14s replacement Ready after %.1f s; %s", who.name, after.Seconds(), cost)
			b.ReportMetric(after.Seconds(), "replaced-s")
			b.ReportMetric(cost.below.Seconds(), "below-s")
			b.ReportMetric(float64(cost.lowest), "lowest-ready")
			b.ReportMetric(float64(cost.short), "short-pods")
			b.ReportMetric(float64(cost.cut), "cut-pods")
			b.ReportMetric(cost.recovered.Seconds(), "recovery-s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// groupReclaimed is one round. after is the time from EC2's first message, the recommendation or
// the warning, until another node was Ready and schedulable.
func groupReclaimed(tb testing.TB, who groupSide) (after time.Duration, cost loss) {
	tb.Helper()
	s := newGroupWorld(tb, who)
	t := trial{name: who.name, apps: 1, replicas: podsFit}
	must(tb, scenario.MakeGroup(s.AWS().States, who.group()))
	if who.lifeboat {
		must(tb, s.client.Create(tb.Context(), capacityFirst()))
	}
	s.deploy(tb, t)
	s.wait(tb, "the group to be up", 5*time.Minute, func(ctx context.Context) (bool, error) {
		up, err := s.podsUp(ctx)
		warm := 0
		for _, m := range s.AWS().States.AutoScaling.Members() {
			if m.State == autoscaling.WarmedStopped {
				warm++
			}
		}
		return up == t.replicas && warm == who.warm, fmt.Errorf("%d pods Ready, %d instances warm: %w", up, warm, err)
	})
	ids, interrupted := s.powered()
	nodes := s.watchNodes(tb)
	pods := s.watchPods(tb)
	r := reclaim{warned: time.Now(), wanted: map[string]int{appName(0): t.replicas}, interrupted: interrupted}
	r.deadline = r.warned.Add(who.recommended + ec2.WarningLead)
	s.reclaimGroup(tb, who, ids)
	cost = s.follow(tb, r, pods)
	return nodes.firstReadyExcept(interrupted).Sub(r.warned), cost
}

// reclaimGroup sends the recommendation, and later the warning to the instances that still run.
func (s *sideBySide) reclaimGroup(tb testing.TB, who groupSide, ids []string) {
	tb.Helper()
	if who.recommended == 0 {
		must(tb, s.EC2().Interrupt(ids, ec2.InterruptOptions{Rebalance: true}))
		return
	}
	must(tb, s.EC2().Recommend(ids))
	timer := time.AfterFunc(who.recommended, func() {
		err := s.EC2().Interrupt(ids, ec2.InterruptOptions{})
		var gone *ec2.NotRunningSpotError
		if err != nil && !errors.As(err, &gone) { // the group may already have replaced them
			tb.Error(err)
		}
	})
	tb.Cleanup(func() { timer.Stop() })
}

func (who groupSide) group() scenario.GroupStatement {
	g := scenario.GroupStatement{
		Name: groupName, Desired: 1, Max: 4, Type: "m5.xlarge", Spot: true, Rebalance: who.rebalances,
		Boot: who.boot, Prepare: who.prepare, Hooks: scenario.HooksNone, Agent: scenario.AgentNone,
		LaunchTime: 10 * time.Minute, LeaveTime: 5 * time.Minute,
	}
	if who.lifeboat {
		g.Hooks, g.Agent = scenario.HooksBoth, scenario.AgentAnswers
	}
	if who.warm > 0 {
		g.Pool, g.Warm = scenario.PoolStopped, who.warm
	}
	return g
}

// capacityFirst is a policy that orders the replacement before the drain.
func capacityFirst() *v1beta1.InterruptionPolicy {
	return &v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "capacity-first"},
		Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{
			Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain,
			Strategy: v1beta1.StrategySurge, Replacement: v1beta1.ReplacementBefore,
		}}},
	}
}

// newGroupWorld is a sandbox with an Auto Scaling group as its only nodes.
func newGroupWorld(tb testing.TB, who groupSide) *sideBySide {
	tb.Helper()
	dir := tb.TempDir()
	o := sandbox.Options{Name: "bench", Dir: filepath.Join(dir, "s"), NoLifeboat: !who.lifeboat, BootDelay: sandbox.FastBoot}
	if who.lifeboat {
		o.Lifeboatd = buildLifeboatd(tb, dir)
	}
	box, err := sandbox.New(o)
	must(tb, err)
	must(tb, box.Up(tb.Context()))
	tb.Cleanup(func() {
		if err := box.Down(); err != nil {
			tb.Error(err)
		}
	})
	s := &sideBySide{Sandbox: box, poweredOff: map[string]time.Time{}}
	scheme := runtime.NewScheme()
	must(tb, clientgoscheme.AddToScheme(scheme))
	must(tb, v1beta1.AddToScheme(scheme))
	config := box.RESTConfig()
	config.QPS = -1
	s.client, err = client.New(config, client.Options{Scheme: scheme})
	must(tb, err)
	s.kube, err = kubernetes.NewForConfig(config)
	must(tb, err)
	tb.Cleanup(s.recordPowerOffs())
	return s
}

// podsUp counts the Ready pods.
func (s *sideBySide) podsUp(ctx context.Context) (int, error) {
	var pods corev1.PodList
	if err := s.client.List(ctx, &pods, client.InNamespace("default")); err != nil {
		return 0, err
	}
	up := 0
	for i := range pods.Items {
		if look(&pods.Items[i]).ready {
			up++
		}
	}
	return up, nil
}

// readyNodes records when each node was first Ready and schedulable.
type readyNodes struct {
	mu    sync.Mutex
	first map[string]time.Time
}

func (s *sideBySide) watchNodes(tb testing.TB) *readyNodes {
	tb.Helper()
	r := &readyNodes{first: map[string]time.Time{}}
	nodes := cache.NewListWatchFromClient(s.kube.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	informer := reflector.NewInformer(nodes, &corev1.Node{}, 0, cache.Indexers{})
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: r.note, UpdateFunc: func(_, object any) { r.note(object) },
	})
	must(tb, err)
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		tb.Fatal("the node watch did not sync")
	}
	return r
}

func (r *readyNodes) note(object any) {
	node, ok := object.(*corev1.Node)
	if !ok || !nodeindex.Ready(node) || slices.ContainsFunc(node.Spec.Taints, isStartupTaint) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, seen := r.first[node.Name]; !seen {
		r.first[node.Name] = time.Now()
	}
}

// isStartupTaint reports whether a taint is one of a starting node.
func isStartupTaint(t corev1.Taint) bool {
	return t.Key == v1beta1.TaintNotInService || t.Key == corev1.TaintNodeNotReady
}

// firstReadyExcept returns when the first node outside of those was Ready; zero if none was.
func (r *readyNodes) firstReadyExcept(those map[string]bool) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for name, at := range r.first {
		if !those[name] && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
