package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/judge"
	"github.com/lifeboat-dev/lifeboat/sandbox/observer"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

// Player plays histories on one sandbox, one after the other.
type Player struct {
	Sandbox  *sandbox.Sandbox
	Observer *observer.Observer
	// Delay is how late a busy machine, and the faults, may make what must happen.
	Delay time.Duration
	// KeepRecords leaves Interruptions to Lifeboat, which removes them after their --ttl.
	KeepRecords bool
	// Karpenter: the sandbox has it.
	Karpenter bool
	// Group: histories make Auto Scaling groups on the sandbox.
	Group bool
	// Stretch adapts the time limits of a scenario to the machine. It may be nil.
	Stretch func(*scenario.Scenario)

	kube  client.Client
	began time.Time // of the history
}

// Judged is how much was judged: writes of all clients, pods, Lifeboat's requests that a pod stops, and
// Interruptions.
type Judged struct {
	Writes  int `json:"writes"`
	Pods    int `json:"pods"`
	Asks    int `json:"asks"`
	Records int `json:"records"`
}

// Outcome is the result of a history.
type Outcome struct {
	Violations []judge.Violation
	Judged
}

const (
	cleanLimit = 10 * time.Minute // a soak has hundreds of nodes
	cleanPoll  = 200 * time.Millisecond
	settlePoll = 2 * time.Second
)

// Play plays a scenario on the empty sandbox, judges it, and empties the sandbox. The error means that
// the scenario could not be played; it is no violation.
func (p *Player) Play(ctx context.Context, name string, text []byte, moment func(scenario.Moment)) (_ Outcome, err error) {
	if err := p.connect(); err != nil {
		return Outcome{}, err
	}
	sc, err := scenario.Parse(name, text)
	if err != nil {
		return Outcome{}, err
	}
	if p.Stretch != nil {
		p.Stretch(sc)
	}
	leaveOut(sc, moment)
	if err := p.Clean(ctx); err != nil {
		return Outcome{}, err
	}
	if err := p.provision(ctx); err != nil {
		return Outcome{}, err
	}
	if err := p.Observer.Forget(); err != nil {
		return Outcome{}, err
	}
	p.began = time.Now().Truncate(time.Second)
	if _, err := scenario.Play(ctx, sc, p.Sandbox, moment); err != nil {
		return Outcome{}, fmt.Errorf("playing %s: %w", name, err)
	}
	if err := p.finish(ctx); err != nil {
		return Outcome{}, err
	}
	return p.settle(ctx, skew(sc))
}

// leaveOut removes the faults for which this machine lacks something.
func leaveOut(sc *scenario.Scenario, moment func(scenario.Moment)) {
	sc.Steps = slices.DeleteFunc(sc.Steps, func(step scenario.Step) bool {
		do, ok := step.Do.(scenario.ChaosStatement)
		if !ok {
			return false
		}
		missing := do.Fault.Missing()
		if missing != nil && moment != nil {
			moment(scenario.Moment{Time: time.Now(), Text: fmt.Sprintf("fault %s is left out: %s", do.Fault.Name, missing)})
		}
		return missing != nil
	})
}

// skew is how wrong a scenario makes the clock of lifeboatd at most.
func skew(sc *scenario.Scenario) (most time.Duration) {
	for _, step := range sc.Steps {
		if do, ok := step.Do.(scenario.ChaosStatement); ok {
			most = max(most, do.Fault.Skew)
		}
	}
	return most
}

// settle judges until there is no violation, or what may be late is late. The first verdicts are about
// a world that stays as it is, so that a healthy history ends at once.
func (p *Player) settle(ctx context.Context, skew time.Duration) (Outcome, error) {
	for limit := time.Now().Add(p.Delay); time.Now().Before(limit); {
		if o, err := p.judge(ctx, judge.Options{Delay: p.Delay, Skew: skew, End: time.Now().Add(2*p.Delay + time.Second)}); err != nil || len(o.Violations) == 0 {
			return o, err
		}
		if !sleep.For(ctx, settlePoll) {
			return Outcome{}, context.Cause(ctx)
		}
	}
	return p.judge(ctx, judge.Options{Delay: p.Delay, Skew: skew, End: time.Now()})
}

func (p *Player) judge(ctx context.Context, o judge.Options) (Outcome, error) {
	var all v1beta1.InterruptionList
	if err := p.kube.List(ctx, &all); err != nil {
		return Outcome{}, fmt.Errorf("listing Interruptions: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].CreationTimestamp.Time.Before(p.began) {
			continue // of an earlier history
		}
		text, err := json.Marshal(&all.Items[i])
		if err != nil {
			return Outcome{}, fmt.Errorf("encoding an Interruption: %w", err)
		}
		o.Records = append(o.Records, text)
	}
	seen, err := p.Observer.HistoryWith(o)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Violations: seen.Judge()}
	out.Writes, out.Pods, out.Asks, out.Records = seen.Size()
	return out, nil
}

func (p *Player) connect() error {
	if p.kube != nil {
		return nil
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
	}
	kube, err := client.New(p.Sandbox.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	p.kube = kube
	return nil
}

// Clean removes everything that a history has made. It is repeated until nothing is left: controllers
// and machines make and remove objects meanwhile.
func (p *Player) Clean(ctx context.Context) error {
	if err := p.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	for {
		left, err := p.remove(ctx)
		if err == nil && left == 0 {
			return nil
		}
		if !sleep.For(ctx, cleanPoll) {
			return fmt.Errorf("removing what a history has made: %d objects are left: %w", left, err)
		}
	}
}

// remove requests the removal of everything, and returns how much is left.
func (p *Player) remove(ctx context.Context) (left int, err error) {
	if left, err = p.terminate(); err != nil {
		return 1, err
	}
	for _, one := range []struct {
		list client.ObjectList
		of   client.Object
		opts []client.DeleteAllOfOption
	}{
		{&policyv1.PodDisruptionBudgetList{}, &policyv1.PodDisruptionBudget{}, inDefault()},
		{&appsv1.DeploymentList{}, &appsv1.Deployment{}, inDefault()},
		{&appsv1.StatefulSetList{}, &appsv1.StatefulSet{}, inDefault()},
		{&appsv1.ReplicaSetList{}, &appsv1.ReplicaSet{}, inDefault()},
		{&appsv1.DaemonSetList{}, &appsv1.DaemonSet{}, inDefault()},
		{&batchv1.JobList{}, &batchv1.Job{}, inDefault()},
		{&corev1.PodList{}, &corev1.Pod{}, append(inDefault(), client.GracePeriodSeconds(0))},
		{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeClaim{}, inDefault()},
		{&corev1.PersistentVolumeList{}, &corev1.PersistentVolume{}, nil},
		{&v1beta1.InterruptionPolicyList{}, &v1beta1.InterruptionPolicy{}, nil},
		{claimList(), claim(), nil},
		{&corev1.NodeList{}, nil, nil}, // they go with their instances
		{&v1beta1.InterruptionList{}, &v1beta1.Interruption{}, nil},
	} {
		if one.list.GetObjectKind().GroupVersionKind().Group != "" && !p.Karpenter {
			continue // Karpenter's kinds do not exist
		}
		if err := p.kube.List(ctx, one.list); err != nil {
			return left + 1, fmt.Errorf("listing what is left: %w", err)
		}
		n := meta.LenList(one.list)
		left += n
		_, records := one.of.(*v1beta1.Interruption)
		if records && p.KeepRecords {
			left -= n
			continue
		}
		if n == 0 || one.of == nil || records && left > n {
			continue // an Interruption goes after its node
		}
		if err := p.kube.DeleteAllOf(ctx, one.of, one.opts...); err != nil {
			return left, fmt.Errorf("deleting what is left: %w", err)
		}
	}
	return left, nil
}

// removeGroups removes the Auto Scaling groups, so that they launch no instance, and then their launch templates.
func (p *Player) removeGroups() error {
	if !p.Group {
		return nil // the launch templates are Karpenter's
	}
	for _, t := range p.Sandbox.EC2().Templates() {
		var err error
		if _, _, _, exists := p.Sandbox.AWS().States.AutoScaling.Sizes(t.Name); exists {
			err = p.Sandbox.AWS().States.AutoScaling.DeleteGroup(t.Name, true)
		} else {
			_, err = p.Sandbox.EC2().DeleteTemplate(ec2.TemplateRef{ID: t.ID})
		}
		if err != nil {
			return fmt.Errorf("removing the group %s: %w", t.Name, err)
		}
	}
	return nil
}

// terminate ends all groups and instances, and returns how many instances there were.
func (p *Player) terminate() (int, error) {
	if err := p.removeGroups(); err != nil {
		return 0, err
	}
	var ids []string
	for _, in := range p.Sandbox.EC2().Instances() {
		if in.State != ec2.Terminated && in.State != ec2.ShuttingDown {
			ids = append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	if _, err := p.Sandbox.EC2().Terminate(ids); err != nil {
		return 0, fmt.Errorf("terminating instances: %w", err)
	}
	return len(ids), nil
}

func inDefault() []client.DeleteAllOfOption {
	return []client.DeleteAllOfOption{client.InNamespace(metav1.NamespaceDefault), client.PropagationPolicy(metav1.DeletePropagationBackground)}
}
