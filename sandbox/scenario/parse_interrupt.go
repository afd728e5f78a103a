package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// defaultCode is the default code of a scheduled event.
const defaultCode = "instance-stop"

// codes are EC2's codes of scheduled events (EC2 User Guide, Scheduled events).
func codes() []string {
	return []string{defaultCode, "instance-retirement", "instance-reboot", "system-reboot", "system-maintenance"}
}

func (p *parser) interrupt(args []string) (any, error) {
	st := InterruptStatement{Kind: SpotInterruption, Via: ViaEC2}
	var err error
	if st.Nodes, args, err = p.nodeNames(args); err != nil {
		return nil, err
	}
	code, capacity := "", ""
	err = options(args, map[string]func(string) error{
		"kind":   oneOf(&st.Kind, SpotInterruption, Rebalance, ScheduledChange, FailedStatus),
		"via":    oneOf(&st.Via, ViaEC2, ViaFIS, ViaQueue),
		"notice": duration(&st.Notice),
		"code":   oneOf(&code, codes()...),

		"capacity": oneOf(&capacity, noCapacity),
	})
	if err != nil {
		return nil, err
	}
	p.clock, p.deadline = true, st.Kind == SpotInterruption || st.Kind == ScheduledChange
	p.planned = p.planned || st.Kind == ScheduledChange
	st.Code, st.Exhausts = code, capacity != ""
	if err := st.check(); err != nil {
		return nil, err
	}
	if st.Kind == SpotInterruption && st.Notice == 0 {
		st.Notice = defaultNotice
	}
	if st.Kind == ScheduledChange && code == "" {
		st.Code = defaultCode
	}
	return st, nil
}

// check rejects what AWS cannot do.
func (st InterruptStatement) check() error {
	switch {
	case st.Kind == Rebalance && st.Via == ViaFIS:
		return fmt.Errorf("FIS sends the recommendation only together with an interruption: leave via=fis out")
	case st.Kind != SpotInterruption && st.Kind != Rebalance && st.Via != ViaEC2:
		return fmt.Errorf("a notice of kind %s comes from EC2: leave via=%s out", st.Kind, st.Via)
	case st.Kind != ScheduledChange && st.Code != "":
		return fmt.Errorf("only a scheduled change has a code: leave code out, or write kind=scheduled")
	case st.Exhausts && (st.Kind != SpotInterruption || st.Via != ViaEC2):
		return fmt.Errorf("EC2 only lacks capacity when it reclaims a spot instance: leave capacity out, or write kind=spot via=ec2")
	default:
		return st.checkNotice()
	}
}

// checkNotice rejects a time to the deadline that the notice cannot have.
func (st InterruptStatement) checkNotice() error {
	switch {
	case st.Notice == 0 && st.Kind == ScheduledChange:
		return fmt.Errorf("a scheduled change has a start time: write how far ahead it is, such as notice=3h")
	case st.Notice == 0:
		return nil
	case st.Kind == Rebalance || st.Kind == FailedStatus:
		return fmt.Errorf("a notice of kind %s has no deadline: leave notice out", st.Kind)
	case st.Via == ViaFIS && (st.Notice < 2*time.Minute || st.Notice > 15*time.Minute):
		return fmt.Errorf("FIS interrupts after 2m to 15m, not %s", st.Notice)
	default:
		return nil
	}
}

// nodeNames reads the names before the options.
func (p *parser) nodeNames(args []string) (names, rest []string, err error) {
	for len(args) > 0 && !strings.Contains(args[0], "=") {
		if err := p.known(args[0]); err != nil {
			return nil, nil, err
		}
		if slices.Contains(names, args[0]) {
			return nil, nil, fmt.Errorf("node %s is named twice", args[0])
		}
		names, args = append(names, args[0]), args[1:]
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("at least one node is required")
	}
	return names, args, nil
}

func (p *parser) cancel(args []string) (any, error) {
	names, rest, err := p.nodeNames(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, fmt.Errorf("%q is too much: cancel takes only nodes", strings.Join(rest, " "))
	case !p.planned:
		return nil, fmt.Errorf("there is no scheduled event to cancel: write an interrupt of kind=scheduled before")
	}
	return CancelStatement{Nodes: names}, nil
}

func (p *parser) approve(args []string) (any, error) { return p.userAction(UserApprove, args) }
func (p *parser) hold(args []string) (any, error)    { return p.userAction(UserHold, args) }
func (p *parser) release(args []string) (any, error) { return p.userAction(UserRelease, args) }

func (p *parser) userAction(act UserAction, args []string) (any, error) {
	names, rest, err := p.nodeNames(args)
	if err != nil {
		return nil, err
	}
	st := UserActionStatement{Act: act, Node: names[0]}
	if err := options(rest, map[string]func(string) error{"by": set(&st.By)}); err != nil {
		return nil, err
	}
	switch {
	case len(names) > 1:
		return nil, fmt.Errorf("%s is about one node", act)
	case st.By == "":
		return nil, fmt.Errorf("by=NAME is required")
	case !p.clock:
		return nil, fmt.Errorf("there is nothing to %s before interrupt", act)
	}
	return st, nil
}
