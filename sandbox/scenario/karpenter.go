package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

const (
	// karpenterPart is Karpenter's name in the sandbox.
	karpenterPart = "karpenter"
	// karpenterQueue is the queue of a Karpenter that receives interruptions itself.
	karpenterQueue = "karpenter"
)

// Sandbox adds to o what the scenario needs.
func (sc *Scenario) Sandbox(o sandbox.Options) sandbox.Options {
	if o.Name == "" {
		o.Name = sandboxName(sc.Name)
	}
	o.Chaos = o.Chaos || sc.breaks()
	st, ok := sc.karpenter()
	if !ok {
		return o
	}
	o.Karpenter = true
	o.KarpenterGuard = st.Guard
	if st.OwnQueue {
		o.KarpenterQueue, o.KarpenterOwnQueue = karpenterQueue, true
	}
	return o
}

// karpenter is the first line of a scenario in which Karpenter provisions.
func (sc *Scenario) karpenter() (KarpenterStatement, bool) {
	do, _ := sc.first()
	st, ok := do.(KarpenterStatement)
	return st, ok
}

// first is the first line that is not about boot times; false: there is none.
func (sc *Scenario) first() (any, bool) {
	for _, step := range sc.Steps {
		if _, boot := step.Do.(BootStatement); !boot {
			return step.Do, true
		}
	}
	return nil, false
}

// withoutBoot is the scenario without its boot times.
func (sc *Scenario) withoutBoot() *Scenario {
	out := *sc
	out.Steps = slices.DeleteFunc(slices.Clone(sc.Steps), func(s Step) bool {
		_, boot := s.Do.(BootStatement)
		return boot
	})
	return &out
}

// boot sets the boot time of instances. It says so if a time is shorter than on an ordinary cluster.
func (p *player) boot(st BootStatement) error {
	p.sandbox.SetBootDelay(st.Delay)
	text := "from here on, instances become nodes 30 to 60 s after their launch, as on an ordinary cluster"
	if st.Delay > 0 {
		text = fmt.Sprintf("compressed: instances become nodes %s after their launch, not after 30 to 60 s", st.Delay)
	}
	p.addMoment(MomentStep, text)
	return nil
}

// provisioner is the name and version of what provisions nodes in a sandbox, such as "karpenter
// v1.14.1", or "".
func provisioner(st sandbox.State) string {
	for _, part := range st.Parts {
		if part.Name == karpenterPart {
			return part.Name + " " + part.Version
		}
	}
	return ""
}

// provision executes one line about the provisioner.
func (p *player) provision(ctx context.Context, s Step) error {
	switch do := s.Do.(type) {
	case KarpenterStatement:
		return p.karpenter(ctx, do)
	case NamedStatement:
		return p.named(ctx, do)
	case CapacityStatement:
		return p.capacity(do)
	case BootStatement:
		return p.boot(do)
	default:
		return fmt.Errorf("unknown statement %T", do)
	}
}

func (p *player) karpenter(ctx context.Context, st KarpenterStatement) error {
	switch st.Do {
	case KarpenterOn:
		text := "Karpenter runs"
		if st.OwnQueue {
			text += ", and receives interruptions from its own queue"
		}
		p.addMoment(MomentStep, text)
		return p.sandbox.StartKarpenter(ctx)
	case KarpenterKill:
		p.addMoment(MomentStep, "Karpenter is killed (SIGKILL)")
		return killRunning(ctx, p.sandbox.KillKarpenter)
	default:
		p.addMoment(MomentStep, "Karpenter is stopped")
		return p.sandbox.StopKarpenter()
	}
}

// capacity removes EC2's capacity, or restores it.
func (p *player) capacity(st CapacityStatement) error {
	if st.Back {
		p.sandbox.EC2().RestoreCapacity()
		p.addMoment(MomentStep, "EC2 has capacity again")
		return nil
	}
	o := ec2.Offering{Type: st.Type, Zone: st.Zone, CapacityType: st.CapacityType}
	p.sandbox.EC2().SetCapacity(o, 0)
	var of []string
	for _, word := range []string{o.CapacityType, o.Type, o.Zone} {
		if word != "" {
			of = append(of, word)
		}
	}
	what := "anything"
	if len(of) > 0 {
		what = strings.Join(of, ", ")
	}
	p.addMoment(MomentStep, "EC2 has no capacity left of "+what)
	return nil
}

// named waits for the next instance that the script did not launch, and gives it the script's name.
func (p *player) named(ctx context.Context, st NamedStatement) error {
	ok, _, err := p.await(ctx, somethingLaunched{}, time.Now().Add(st.Within))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("no instance was launched within %s that could be named %s", st.Within, st.Name)
	}
	id := ""
	p.do(func(w *World) []Moment {
		id = w.Name(st.Name)
		return []Moment{w.moment(time.Now(), MomentMet, st.Name, "", id+" is called "+st.Name)}
	})
	in, ok := p.sandbox.EC2().Instance(id)
	if !ok {
		return errors.New("EC2 has forgotten the instance " + id)
	}
	p.nodes[st.Name] = in
	return nil
}
