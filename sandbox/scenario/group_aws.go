package scenario

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// MakeGroup creates an Auto Scaling group with its launch template, as a scenario does; for a
// declared group only the launch template.
func MakeGroup(aws *emulator.States, st GroupStatement) error {
	template, err := aws.EC2.CreateTemplate(st.Name, "", "", st.template(), nil)
	if err != nil {
		return fmt.Errorf("making the launch template of the group %s: %w", st.Name, err)
	}
	if st.Declared {
		return nil
	}
	return aws.AutoScaling.CreateGroup(st.group(ec2.TemplateRef{ID: template.ID, Version: "$Latest"}))
}

// group is what Auto Scaling is asked for.
func (st GroupStatement) group(template ec2.TemplateRef) autoscaling.Group {
	g := autoscaling.Group{
		Name: st.Name, Min: st.Min, Max: st.Max, Desired: st.Desired, Zones: st.Zones,
		Template: template, Tags: map[string]string{"kubernetes.io/cluster/sandbox": "owned"}, Hooks: st.hooks(),
		CapacityRebalance: st.Rebalance,
	}
	if st.Spot {
		// Warm instances are bought on demand: a spot instance cannot be stopped.
		none := 0
		g.Template, g.Mixed = ec2.TemplateRef{}, &autoscaling.Mixed{
			Template: template, Distribution: autoscaling.Distribution{OnDemandPercent: &none, SpotStrategy: "price-capacity-optimized"},
		}
	}
	if st.Pool != "" {
		g.WarmPool = &autoscaling.WarmPool{MinSize: st.Warm, State: st.Pool.state(), ReuseOnScaleIn: st.Reuse}
		if fixed := 0; st.Warm > 0 {
			g.WarmPool.MaxPrepared = &fixed // so many are warm, however many are in service
		}
	}
	return g
}

// template is what the group launches.
func (st GroupStatement) template() ec2.TemplateData {
	tags := ec2.TagSpecification{ResourceType: "instance"}
	for key, value := range st.tags() {
		tags.Tags = append(tags.Tags, struct{ Key, Value string }{key, value})
	}
	return ec2.TemplateData{
		ImageID: image, InstanceType: st.Type, UserData: base64.StdEncoding.EncodeToString([]byte(st.userData())),
		TagSpecifications: []ec2.TagSpecification{tags},
	}
}

// userData is what an instance does at its first boot.
func (st GroupStatement) userData() string {
	const start = "#!/bin/sh\n/etc/eks/bootstrap.sh sandbox"
	taint := " --kubelet-extra-args '--register-with-taints=" + v1beta1.TaintNotInService + "=:NoSchedule'\n"
	switch st.Agent {
	case AgentNone:
		return start + "\n"
	case AgentSilent:
		return start + taint + "lifeboatd agent boot --answer=false\n"
	default:
		return start + taint + "lifeboatd agent boot\n"
	}
}

// tags are those of its instances.
func (st GroupStatement) tags() map[string]string {
	tags := map[string]string{}
	put := func(key, value string) {
		if value != "" {
			tags[key] = value
		}
	}
	put(machines.TagNodeLabels, st.Labels)
	put(machines.TagNodeTaints, st.Taints)
	if st.Boot > 0 {
		put(machines.TagBootTime, st.Boot.String())
	}
	if st.Prepare > 0 {
		put(machines.TagPrepareTime, st.Prepare.String())
	}
	return tags
}

// hooks are Lifeboat's, as its NodeGroups make them.
func (st GroupStatement) hooks() []autoscaling.Hook {
	var out []autoscaling.Hook
	if st.Hooks == HooksBoth || st.Hooks == HooksLaunch {
		out = append(out, autoscaling.Hook{
			Name: v1beta1.LaunchHook, Transition: autoscaling.Launching, DefaultResult: autoscaling.Abandon, Heartbeat: st.LaunchTime,
		})
	}
	if st.Hooks == HooksBoth || st.Hooks == HooksTerminate {
		out = append(out, autoscaling.Hook{
			Name: v1beta1.TerminateHook, Transition: autoscaling.Leaving, DefaultResult: autoscaling.Continue, Heartbeat: st.LeaveTime,
		})
	}
	return out
}

func (s PoolState) state() autoscaling.LifecycleState {
	switch s {
	case PoolRunning:
		return autoscaling.WarmedRunning
	case PoolHibernated:
		return autoscaling.WarmedHibernated
	default:
		return autoscaling.WarmedStopped
	}
}

func (st GroupStatement) describe() string {
	if st.Declared {
		return "its launch template, for a NodeGroup to declare the rest"
	}
	text := strconv.Itoa(st.Desired) + " in service"
	if st.Pool != "" {
		warm := "what is left of " + strconv.Itoa(st.Max)
		if st.Warm > 0 {
			warm = strconv.Itoa(st.Warm)
		}
		text += fmt.Sprintf(", %s warm (%s)", warm, st.Pool)
	}
	switch st.Hooks {
	case HooksNone:
		text += ", no hooks"
	case HooksBoth:
		text += ", with both hooks"
	default:
		text += ", with the " + string(st.Hooks) + " hook alone"
	}
	return text
}
