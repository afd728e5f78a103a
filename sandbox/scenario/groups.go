package scenario

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
)

// groupProvisioner is the report's name of groups that launch nodes.
const groupProvisioner = "EC2 Auto Scaling (emulated)"

// taintAutoscaler is the taint of the cluster-autoscaler on a node whose instance it is about to
// terminate (Kubernetes Autoscaler, cluster-autoscaler FAQ).
const taintAutoscaler = "ToBeDeletedByClusterAutoscaler"

func (p *player) autoScaling() *autoscaling.State { return p.sandbox.AWS().States.AutoScaling }

// groupStep executes one line about Auto Scaling groups.
func (p *player) groupStep(ctx context.Context, do any) error {
	groups := p.autoScaling()
	switch st := do.(type) {
	case GroupStatement:
		return p.makeGroup(st)
	case ScaleStatement:
		p.startClock(fmt.Sprintf("the group %s scales to %d instances in service", st.Group, st.To))
		return groups.SetDesired(st.Group, st.To, false)
	case RefreshStatement:
		p.startClock("the group " + st.Group + " replaces all its instances (instance refresh)")
		all := 100 // in service at any time
		_, err := groups.StartRefresh(st.Group, autoscaling.RefreshOptions{MinHealthy: &all})
		return err
	case BalanceStatement:
		p.startClock("the group " + st.Group + " balances its zones")
		if !groups.RebalanceZones(st.Group) {
			return fmt.Errorf("the zones of the group %s are balanced already", st.Group)
		}
		return nil
	case DetachStatement:
		p.startClock(st.Node + " is detached from its group (DetachInstances), which keeps its desired capacity")
		return p.detach(st.Node)
	case TerminateStatement:
		return p.terminate(ctx, st)
	default:
		return fmt.Errorf("unknown statement %T", do)
	}
}

// startClock starts or restarts the clock without a deadline.
func (p *player) startClock(text string) {
	now := time.Now()
	p.do(func(w *World) []Moment {
		w.Start(now, time.Time{})
		return []Moment{w.moment(now, MomentNotice, "", "", text)}
	})
}

func (p *player) makeGroup(st GroupStatement) error {
	p.do(func(w *World) []Moment {
		if w.provisioner == "" {
			w.provisioner = groupProvisioner
		}
		return []Moment{w.moment(time.Now(), MomentStep, "", "", "the group "+st.Name+" is made: "+st.describe())}
	})
	return MakeGroup(p.sandbox.AWS().States, st)
}

func (p *player) detach(node string) error {
	id := p.nodes[node].ID
	m, ok := p.autoScaling().Member(id)
	if !ok {
		return fmt.Errorf("node %s is in no group", node)
	}
	_, err := p.autoScaling().DetachMembers(m.Group, []string{id}, false)
	return err
}

// terminate ends an instance, by the given caller.
func (p *player) terminate(ctx context.Context, st TerminateStatement) error {
	id := p.nodes[st.Node].ID
	p.do(func(w *World) []Moment { w.MarkInterrupted([]string{st.Node}); return nil })
	switch st.By {
	case ByEC2:
		p.startClock("a user terminates " + st.Node + " past its group (ec2:TerminateInstances)")
		_, err := p.sandbox.EC2().Terminate([]string{id})
		return err
	case ByAutoscaler:
		p.startClock("the cluster-autoscaler taints " + st.Node + ", and takes it out of its group")
		if err := p.taint(ctx, st.Node, corev1.Taint{
			Key: taintAutoscaler, Value: strconv.FormatInt(time.Now().Unix(), 10), Effect: corev1.TaintEffectNoSchedule,
		}); err != nil {
			return err
		}
	default:
		p.startClock("a user takes " + st.Node + " out of its group (TerminateInstanceInAutoScalingGroup)")
	}
	_, err := p.autoScaling().TerminateMember([]string{id}, true)
	return err
}

func (p *player) taint(ctx context.Context, name string, t corev1.Taint) error {
	node := &corev1.Node{}
	if err := p.client.Get(ctx, types.NamespacedName{Name: p.nodes[name].PrivateDNSName}, node); err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	before := client.MergeFromWithOptions(node.DeepCopy(), client.MergeFromWithOptimisticLock{})
	node.Spec.Taints = append(node.Spec.Taints, t)
	if err := p.client.Patch(ctx, node, before); err != nil {
		return fmt.Errorf("tainting node %s: %w", name, err)
	}
	return nil
}
