package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	awshealth "github.com/lifeboat-dev/lifeboat/emulator/health"
)

const (
	// bootDelay is the time from the launch of an instance to its Node.
	bootDelay = 30 * time.Second
	// podStarts is the time from a pod's binding to Ready, podStops the time that its preStop hook
	// takes. Simulated kubelets take up to a second more.
	podStarts, podStops, podGrace = 3 * time.Second, 10 * time.Second, 20 * time.Second
	// podsFit is the number of pods that fill a node.
	podsFit = 4
)

// trial is one interruption of all nodes at once.
type trial struct {
	name           string
	apps, replicas int   // Deployments, and the pods of each
	budgets        bool  // maxUnavailable 1 for each
	exhaust        bool  // the reclaimed instance types and zones have no more capacity
	cause          cause // the zero value: EC2 reclaims spot instances
}

// cause is what ends the instances.
type cause int

const (
	spotReclaim cause = iota
	termination       // a user calls TerminateInstances
	healthStop        // AWS Health announces that EC2 will stop them
)

// lead is the time from the notice to the power cut. A terminated instance has as long as EC2 waits
// for its operating system. Lifeboat begins to prepare for a planned stop in its last hour.
func (c cause) lead() time.Duration {
	switch c {
	case termination:
		return 4 * time.Minute
	case healthStop:
		return 30 * time.Minute
	default:
		return ec2.WarningLead
	}
}

func (t trial) nodes() int { return t.apps * t.replicas / podsFit }

var trials = []trial{
	{name: "one", apps: 1, replicas: 4},
	{name: "terminated", apps: 1, replicas: 4, cause: termination},
	{name: "health-stop", apps: 1, replicas: 4, cause: healthStop},
	{name: "one-exhausted", apps: 1, replicas: 4, exhaust: true},
	{name: "twenty", apps: 8, replicas: 10, budgets: true},
	{name: "twenty-exhausted", apps: 8, replicas: 10, budgets: true, exhaust: true},
}

// side is the program that handles the interruption.
type side struct {
	name     string
	lifeboat bool // false: Karpenter
	evict    bool // with a policy that evicts; false: Lifeboat's defaults
}

var sides = []side{{name: "karpenter"}, {name: "evict", lifeboat: true, evict: true}, {name: "installed", lifeboat: true}}

// BenchmarkSideBySide interrupts Karpenter's nodes on one cluster, first with Karpenter's own
// interruption handling and then with Lifeboat's. Each round starts with new workloads and nodes.
// Karpenter restarts before each, because it remembers unavailable capacity for minutes. Karpenter
// logs at its default level. Beside Lifeboat it may not poll the status of instances, as Lifeboat's
// guide says.
func BenchmarkSideBySide(b *testing.B) {
	s := newSideBySide(b)
	for _, t := range trials {
		b.Run(t.name, func(b *testing.B) {
			for _, who := range sides {
				b.Run(who.name, func(b *testing.B) { s.bench(b, t, who) })
			}
		})
	}
}

func (s *sideBySide) bench(b *testing.B, t trial, who side) {
	cost := s.reclaimed(b, t, who)
	b.Logf("FIGURES %-16s %-9s %s", t.name, who.name, cost)
	b.ReportMetric(float64(cost.lowest), "lowest-ready")
	b.ReportMetric(cost.below.Seconds(), "below-s")
	b.ReportMetric(cost.missing.Seconds(), "missing-pod-s")
	b.ReportMetric(float64(cost.short), "short-pods")
	b.ReportMetric(float64(cost.cut), "cut-pods")
	b.ReportMetric(cost.recovered.Seconds(), "recovery-s")
	b.ReportMetric(0, "ns/op")
	if t.name == "one" && !who.lifeboat && cost.below == 0 {
		b.Fatal("with Karpenter alone all pods of the only node stayed Ready: the setup cannot detect a loss")
	}
}

// reclaimed creates the workloads of a trial, interrupts their nodes, and returns the disruption.
func (s *sideBySide) reclaimed(tb testing.TB, t trial, who side) loss {
	tb.Helper()
	s.clean(tb)
	s.tune(tb, who)
	s.deploy(tb, t)
	s.untilReady(tb, t)
	ids, interrupted := s.powered()
	if len(ids) != t.nodes() {
		tb.Logf("%s, %s: %d nodes, want %d", t.name, who.name, len(ids), t.nodes())
	}
	pods := s.watchPods(tb)
	r := reclaim{warned: time.Now(), wanted: map[string]int{}, interrupted: interrupted}
	r.deadline = r.warned.Add(t.cause.lead())
	for app := range t.apps {
		r.wanted[appName(app)] = t.replicas
	}
	must(tb, s.interrupt(ids, t, r.deadline))
	return s.follow(tb, r, pods)
}

func (s *sideBySide) interrupt(ids []string, t trial, deadline time.Time) error {
	var err error
	switch t.cause {
	case termination:
		_, err = s.EC2().Terminate(ids)
	case healthStop:
		_, err = s.AWS().States.Health.Schedule(awshealth.Plan{InstanceIDs: ids, Code: "instance-stop", NotBefore: deadline.Truncate(time.Second)})
	default:
		err = s.EC2().Interrupt(ids, ec2.InterruptOptions{Exhaust: t.exhaust})
	}
	return err
}

// settling is the time for which the wanted state must hold before a round ends, overtime the limit
// for that after the deadline, or after longest.
const settling, overtime, longest = 5 * time.Second, 90 * time.Second, 4 * time.Minute

// follow waits until the interrupted nodes are gone and all wanted pods run on other nodes, or
// until the limit.
func (s *sideBySide) follow(tb testing.TB, r reclaim, pods *podLog) loss {
	tb.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tb.Context().Done():
			tb.Fatal(tb.Context().Err())
		case <-tick.C:
		}
		r.until, r.sightings, r.off = time.Now(), pods.all(), s.powerOffTimes(r.interrupted)
		cost := r.judge()
		stands := cost.recovered >= 0 && r.until.Sub(r.warned) > cost.recovered+settling && len(r.off) == len(r.interrupted)
		if stands || r.until.Sub(r.warned) > min(r.deadline.Sub(r.warned), longest)+overtime {
			return cost
		}
	}
}

func appName(i int) string { return fmt.Sprintf("app-%d", i) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
