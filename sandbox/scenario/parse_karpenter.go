package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// launched is the state of a node that names it.
const launched = "launched"

// noCapacity is the value of capacity without "back".
const noCapacity = "none"

// errNoKarpenter: a sandbox without Karpenter cannot start it later.
var errNoKarpenter = errors.New("nothing provisions in this scenario: begin the script with karpenter on")

// errNothingLaunches: the script names launched nodes, and has no provisioner.
var errNothingLaunches = errors.New("nothing launches nodes in this scenario: begin the script with karpenter on, or make a group")

func (p *parser) karpenterLine(args []string) (any, error) {
	_, begins := p.scenario.first()
	first := !begins
	switch {
	case !first && !p.karpenter:
		return nil, errNoKarpenter
	case len(args) == 0:
		return nil, fmt.Errorf("an act is missing")
	case first && args[0] != string(KarpenterOn):
		return nil, fmt.Errorf("karpenter on must be the first line about Karpenter")
	}
	st := KarpenterStatement{}
	if err := oneOf(&st.Do, KarpenterOn, KarpenterOff, KarpenterKill)(args[0]); err != nil {
		return nil, err
	}
	if len(args) > 1 && !first {
		return nil, fmt.Errorf("%q is too much: only the first line takes options", strings.Join(args[1:], " "))
	}
	p.karpenter = true
	return st, options(args[1:], map[string]func(string) error{
		"guard":     flag(func() { st.Guard = true }),
		"own-queue": flag(func() { st.OwnQueue = true }),
	})
}

// ordinaryBoot is the value of boot for the times of an ordinary cluster.
const ordinaryBoot = "ordinary"

func (p *parser) boot(args []string) (any, error) {
	st := BootStatement{}
	switch {
	case len(args) != 1:
		return nil, fmt.Errorf("boot goes with one time")
	case args[0] == ordinaryBoot:
		return st, nil
	}
	return st, duration(&st.Delay)(args[0])
}

// launchedNode registers the name of a node that Karpenter or a group launches.
func (p *parser) launchedNode(name string) error {
	if !p.karpenter && len(p.groups) == 0 {
		return errNothingLaunches
	}
	return p.newNode(name)
}

func (p *parser) capacity(args []string) (any, error) {
	switch {
	case slices.Equal(args, []string{"back"}):
		return CapacityStatement{Back: true}, nil
	case len(args) == 0 || args[0] != noCapacity:
		return nil, fmt.Errorf("unknown capacity %q", strings.Join(args, " "))
	}
	st := CapacityStatement{}
	return st, options(args[1:], map[string]func(string) error{
		"type":       set(&st.Type),
		"zone":       set(&st.Zone),
		ec2.Spot:     flag(func() { st.CapacityType = ec2.Spot }),
		ec2.OnDemand: flag(func() { st.CapacityType = ec2.OnDemand }),
	})
}

// machinesCondition is a count of instances or NodeClaims.
func (p *parser) machinesCondition(what, op string, n int) (Condition, error) {
	c := machinesCount{Op: op, N: n}
	err := oneOf(&c.What, runningInstances, launchedInstances, nodeClaims)(what)
	if err == nil && c.What == nodeClaims && !p.karpenter {
		err = errNoKarpenter
	}
	return c, err
}
