package nodegroup

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Adopt returns a NodeGroup that describes the group as it is, so that a plan
// for it changes nothing that works: hooks by name and, with management All,
// all settings. If something cannot be read or expressed, it manages less and
// explains that in notes. For a group that was not read (Exists false) it sets
// only the name.
func Adopt(o Observed, m v1beta1.Management) (g *v1beta1.NodeGroup, notes []string) {
	g = &v1beta1.NodeGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeGroup"},
		ObjectMeta: metav1.ObjectMeta{Name: ObjectName(o)},
		Spec:       v1beta1.NodeGroupSpec{Management: cmp.Or(m, v1beta1.ManageNothing), DeletionPolicy: v1beta1.KeepGroup},
	}
	if g.Name != o.Name {
		g.Spec.AutoScalingGroup = o.Name
	}
	if !o.Exists {
		return g, nil
	}
	if owner := o.owner(); owner != "" {
		if m == v1beta1.ManageAll || m == v1beta1.ManageHooks {
			g.Spec.Management = v1beta1.ManageNothing
			notes = append(notes, fmt.Sprintf("management is Observe: the group belongs to %s, and only %[1]s can change it", owner))
		}
		return g, notes
	}
	if most, note := o.adoptable(m); note != "" {
		m, g.Spec.Management = most, most
		notes = append(notes, note)
	}
	for _, terminating := range []bool{false, true} {
		note := adoptHook(&g.Spec.Hooks, o, terminating)
		notes = append(notes, note...)
	}
	if m == v1beta1.ManageAll {
		adoptSettings(&g.Spec, o)
	}
	return g, notes
}

// adoptable returns how much of the requested management is possible and, if
// that is less, why. What could not be read cannot be declared, and applying a
// spec without it would duplicate or delete it.
func (o Observed) adoptable(m v1beta1.Management) (most v1beta1.Management, note string) {
	const unread = "management is Observe: the group's %s could not be read, and Lifeboat would have it %s. Allow yourself %s, delete this NodeGroup (this changes nothing in AWS) and adopt the group again"
	all := m == v1beta1.ManageAll
	switch s := o.Settings; {
	case !all && m != v1beta1.ManageHooks && !o.HooksKnown:
		return v1beta1.ManageNothing, "the group's lifecycle hooks could not be read: if it has other hooks than Lifeboat's, name them in spec.hooks (`aws autoscaling describe-lifecycle-hooks` lists them)"
	case !o.HooksKnown:
		return v1beta1.ManageNothing, fmt.Sprintf(unread, "lifecycle hooks", "created a second time", "autoscaling:DescribeLifecycleHooks")
	case all && !o.PoolKnown:
		return v1beta1.ManageNothing, fmt.Sprintf(unread, "warm pool", "deleted with its instances", "autoscaling:DescribeWarmPool")
	case all && s != nil && len(s.Inexpressible) > 0:
		return v1beta1.ManageHooks, fmt.Sprintf("management is Hooks: the group's mixed instances policy has %s, which a NodeGroup cannot express; manage the rest of the group with the tool that created it", strings.Join(s.Inexpressible, ", "))
	}
	return m, ""
}

// adoptSettings copies the group's settings into the spec.
func adoptSettings(spec *v1beta1.NodeGroupSpec, o Observed) {
	spec.MinSize, spec.MaxSize = &o.Min, &o.Max
	if p := o.Pool; p != nil && o.PoolKnown {
		spec.WarmPool = &v1beta1.WarmPool{State: p.State, MinSize: p.Min, ReuseOnScaleIn: p.Reuse}
		if p.MaxPrepared != nil && *p.MaxPrepared != unbounded {
			spec.WarmPool.MaxPreparedCapacity = p.MaxPrepared
		}
	}
	s := o.Settings
	if s == nil {
		return
	}
	if t := s.Template; t != nil {
		spec.LaunchTemplate = &v1beta1.LaunchTemplate{ID: t.ID, Version: t.Version}
		if t.ID == "" {
			spec.LaunchTemplate.Name = t.Name
		}
	}
	spec.MixedInstances, spec.Subnets = s.Mixed, s.Subnets
	spec.CapacityRebalance = &s.CapacityRebalance
	if s.Retain {
		spec.RetainUndrained = &s.Retain
	}
}

// adoptHook names the existing hook of a transition if the choice is clear: the
// only one, or the one of kOps or nth. It skips hooks that CodeDeploy manages
// and completes itself (AWS CodeDeploy User Guide, "Integrating CodeDeploy with
// Amazon EC2 Auto Scaling").
func adoptHook(hooks *v1beta1.LifecycleHooks, o Observed, terminating bool) (notes []string) {
	usual, key := v1beta1.LaunchHook, "launch"
	if terminating {
		usual, key = v1beta1.TerminateHook, "terminate"
	}
	if _, there := o.Hook(usual); there {
		return nil
	}
	var found, known []string
	for _, h := range o.Hooks {
		if h.Terminating != terminating || strings.HasPrefix(h.Name, "CodeDeploy-managed-") {
			continue
		}
		found = append(found, h.Name)
		if h.Name == "kops-warmpool" || strings.HasSuffix(h.Name, "-NTHLifecycleHook") {
			known = append(known, h.Name)
		}
	}
	if len(found) > 1 && len(known) == 1 {
		found = known
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
	default:
		return []string{fmt.Sprintf("the group has several %s hooks: put the one that Lifeboat must answer (%s) into hooks.%s.name, or omit it to create a new one", key, strings.Join(found, ", "), key)}
	}
	hook := &v1beta1.LifecycleHook{Name: found[0]}
	if terminating {
		hooks.Terminate = hook
	} else {
		hooks.Launch = hook
	}
	return []string{fmt.Sprintf("Lifeboat now answers the %s hook %s. Others, such as kOps' nodeup or aws-node-termination-handler, may answer it too, but this is no longer needed", key, found[0])}
}

// nameTags are the tags in which tools store their name of the group.
func nameTags() []string {
	return []string{TagObject, "kops.k8s.io/instancegroup", tagEKS, "alpha.eksctl.io/nodegroup-name"}
}

var notInNames = regexp.MustCompile(`[^a-z0-9.-]+`)

// ObjectName is the name of the NodeGroup for a group: the name that the
// creating tool uses, because its nodes have that label and policies select by
// it; else the group's own name.
func ObjectName(o Observed) string {
	name := o.Name
	for _, key := range nameTags() {
		if o.Tags[key] != "" {
			name = o.Tags[key]
			break
		}
	}
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-.")
	const most = 63 // the limit of a label value
	return strings.Trim(name[:min(len(name), most)], "-.")
}
