package bootagent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

// world is a region with a group, named g, and the machines of its instances.
type world struct {
	*boottest.Region
	t     *testing.T
	fleet *boottest.Fleet
	as    *autoscaling.State
	// allowed are machines whose violations are intended.
	allowed bool

	mu  sync.Mutex
	out strings.Builder
}

// host is a machine that boots in 20 s, and whose node is Ready 15 s after its kubelet.
func host() boottest.Host {
	return boottest.Host{
		BootFor: 20 * time.Second, RegisterFor: 5 * time.Second, ReadyFor: 10 * time.Second, RunFor: 30 * time.Second,
	}
}

// warming has images to pull and a command to run.
func warming() boottest.Host {
	h := host()
	h.Images = []string{"registry.example/a:1", "registry.example/b:2", "registry.example/c:3"}
	h.Prepare = []string{"set-up"}
	return h
}

func launchHook() autoscaling.Hook {
	return autoscaling.Hook{Name: "lifeboat-launch", Transition: autoscaling.Launching, Heartbeat: 10 * time.Minute}
}

func terminateHook() autoscaling.Hook {
	return autoscaling.Hook{Name: "lifeboat-terminate", Transition: autoscaling.Leaving, Heartbeat: 5 * time.Minute, DefaultResult: autoscaling.Continue}
}

// cold is a group without a pool; pooled has one warm instance in a state.
func cold(desired int) autoscaling.Group {
	return autoscaling.Group{Max: max(4, desired), Desired: desired, Hooks: []autoscaling.Hook{launchHook(), terminateHook()}}
}

func pooled(state autoscaling.LifecycleState) autoscaling.Group {
	g := cold(0)
	g.Max = 1
	g.WarmPool = &autoscaling.WarmPool{State: state, MinSize: 0}
	return g
}

// run runs a test in a synctest bubble, and checks the invariants at the end.
func run(t *testing.T, g autoscaling.Group, h boottest.Host, play func(w *world)) {
	t.Helper()
	runHosts(t, g, func(ec2.Instance) boottest.Host { return h }, play)
}

func runHosts(t *testing.T, g autoscaling.Group, hosts func(ec2.Instance) boottest.Host, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		region, err := boottest.Start(emulator.Options{Region: "eu-west-1", Timing: ec2.Timing{PendingFor: 5 * time.Second, StoppingFor: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		defer region.Stop()
		w := &world{Region: region, t: t, as: region.States.AutoScaling}
		w.fleet = boottest.Attend(region, func(in ec2.Instance) boottest.Host {
			h := hosts(in)
			h.Logger = w.logger()
			return h
		})
		defer w.fleet.Stop()
		if _, err := region.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil); err != nil {
			t.Fatal(err)
		}
		w.group(g)
		play(w)
		w.checkInvariants()
	})
}

func (w *world) group(g autoscaling.Group) {
	w.t.Helper()
	if g.Name == "" {
		g.Name = "g"
	}
	g.Template = ec2.TemplateRef{Name: "workers", Version: "$Latest"}
	if err := w.as.CreateGroup(g); err != nil {
		w.t.Fatal(err)
	}
}

// checkInvariants fails the test if an invariant was violated, with the log.
func (w *world) checkInvariants() {
	w.t.Helper()
	for _, m := range w.fleet.Machines() {
		if wrong := m.Wrong(); len(wrong) > 0 && !w.allowed {
			w.t.Errorf("on %s: %s", m.ID, strings.Join(wrong, "; "))
		}
	}
	if w.t.Failed() {
		w.report()
	}
}

func (w *world) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Log("\n" + w.out.String())
	for _, m := range w.fleet.Machines() {
		w.t.Logf("%s\n%s\n%+v", m.ID, m.History(), m.Status())
	}
	for _, c := range w.as.Trace() {
		w.t.Log(c.Time.Format("15:04:05.0"), c.InstanceID, c.From, "→", c.To)
	}
	w.t.Log(w.Gate.AllCalls("autoscaling"))
}

// fail fails the test immediately.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf(format, args...)
	w.report()
	w.t.FailNow()
}

func (w *world) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		fmt.Fprintln(&w.out, time.Now().Format("15:04:05.0"), prefix, args)
	}, funcr.Options{})
}

// hasLogged reports whether a text was logged.
func (w *world) hasLogged(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.out.String(), text)
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// scale sets the desired capacity.
func (w *world) scale(n int) {
	w.t.Helper()
	if err := w.as.SetDesired("g", n, false); err != nil {
		w.t.Fatal(err)
	}
}

// until waits for a condition with a time limit; it checks every second.
func (w *world) until(most time.Duration, what string, holds func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for time.Since(began) <= most {
		if holds() {
			return time.Since(began)
		}
		pass(time.Second)
	}
	w.fail("waited %s until %s", most, what)
	return 0
}

// only is the only machine.
func (w *world) only() *boottest.Machine {
	w.t.Helper()
	w.until(time.Minute, "there is a machine", func() bool { return len(w.fleet.Machines()) > 0 })
	all := w.fleet.Machines()
	if len(all) != 1 {
		w.fail("there are %d machines", len(all))
	}
	return all[0]
}

// comesTo waits until a machine is in a state.
func (w *world) comesTo(m *boottest.Machine, state string, within time.Duration) time.Duration {
	w.t.Helper()
	return w.until(within, m.ID+" is "+state, func() bool { return m.State() == state })
}

// entered is when a machine last entered a state.
func (w *world) entered(m *boottest.Machine, state string) time.Time {
	var at time.Time
	for _, c := range w.as.Trace() {
		if c.InstanceID == m.ID && string(c.To) == state {
			at = c.Time
		}
	}
	return at
}

// firings returns the results of the firings of a hook, such as "answer CONTINUE".
func (w *world) firings(hook string) []string {
	var out []string
	for _, f := range w.as.Firings() {
		if f.Hook != hook {
			continue
		}
		if f.Ended.IsZero() {
			out = append(out, "pending")
			continue
		}
		out = append(out, strings.TrimSpace(string(f.By)+" "+string(f.Result)))
	}
	return out
}

const answered = "answer CONTINUE"

func (w *world) expectFirings(hook string, want ...string) {
	w.t.Helper()
	if got := w.firings(hook); strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Errorf("firings of %s: %v, want %v", hook, got, want)
	}
}

// serves fails unless the machine is in service, with a node that is Ready.
func (w *world) serves(m *boottest.Machine) {
	w.t.Helper()
	node, _ := m.Node()
	if m.State() != "InService" || !m.KubeletRuns() || !node.Ready {
		w.t.Errorf("%s is %s, its kubelet runs: %t, its node is Ready: %t", m.ID, m.State(), m.KubeletRuns(), node.Ready)
	}
}

func (w *world) calls(action string) int { return w.Gate.Calls("autoscaling", action) }

// dice returns the same numbers every time.
func dice(seed uint64) func() float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
}
