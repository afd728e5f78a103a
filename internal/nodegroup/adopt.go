package nodegroup

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Adopt writes down the NodeGroup of a group as it is, so that a plan for it
// changes nothing that works: its hooks by their names, and with management All
// its settings. Where that cannot be had, less is managed. What a person should
// know of it comes as notes. Of a group that was not read, with Exists false, it
// knows the name alone.
func Adopt(o Observed, m v1alpha1.Management) (g *v1alpha1.NodeGroup, notes []string) {
	g = &v1alpha1.NodeGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeGroup"},
		ObjectMeta: metav1.ObjectMeta{Name: ObjectName(o)},
		Spec:       v1alpha1.NodeGroupSpec{Management: cmp.Or(m, v1alpha1.ManageNothing), DeletionPolicy: v1alpha1.KeepGroup},
	}
	if g.Name != o.Name {
		g.Spec.AutoScalingGroup = o.Name
	}
	if !o.Exists {
		return g, nil
	}
	if owner := o.owner(); owner != "" {
		if m == v1alpha1.ManageAll || m == v1alpha1.ManageHooks {
			g.Spec.Management = v1alpha1.ManageNothing
			notes = append(notes, fmt.Sprintf("management is Observe: the group belongs to %s, which alone can change it", owner))
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
	if m == v1alpha1.ManageAll {
		adoptSettings(&g.Spec, o)
	}
	return g, notes
}

// adoptable is how much of what was asked for can be managed, and if that is less,
// why. What could not be read cannot be declared, and what is not declared is put
// anew beside it, or deleted.
func (o Observed) adoptable(m v1alpha1.Management) (most v1alpha1.Management, note string) {
	const unread = "management is Observe: the group's %s could not be read, and what is not declared is %s. Allow yourself %s, delete this NodeGroup (nothing happens at AWS) and adopt the group again"
	all := m == v1alpha1.ManageAll
	switch s := o.Settings; {
	case !all && m != v1alpha1.ManageHooks && !o.HooksKnown:
		return v1alpha1.ManageNothing, "the group's lifecycle hooks could not be read: if it has others than Lifeboat's own, name them in spec.hooks (autoscaling:DescribeLifecycleHooks shows them)"
	case !o.HooksKnown:
		return v1alpha1.ManageNothing, fmt.Sprintf(unread, "lifecycle hooks", "put a second time", "autoscaling:DescribeLifecycleHooks")
	case all && !o.PoolKnown:
		return v1alpha1.ManageNothing, fmt.Sprintf(unread, "warm pool", "deleted with its instances", "autoscaling:DescribeWarmPool")
	case all && s != nil && len(s.Unsaid) > 0:
		return v1alpha1.ManageHooks, fmt.Sprintf("management is Hooks: the group's mixed instances policy has %s, which a NodeGroup cannot say; keep the rest of the group where it was made", strings.Join(s.Unsaid, ", "))
	}
	return m, ""
}

// adoptSettings declares the group as it is.
func adoptSettings(spec *v1alpha1.NodeGroupSpec, o Observed) {
	spec.MinSize, spec.MaxSize = &o.Min, &o.Max
	if p := o.Pool; p != nil && o.PoolKnown {
		spec.WarmPool = &v1alpha1.WarmPool{State: p.State, MinSize: p.Min, ReuseOnScaleIn: p.Reuse}
		if p.MaxPrepared != nil && *p.MaxPrepared != unbounded {
			spec.WarmPool.MaxPreparedCapacity = p.MaxPrepared
		}
	}
	s := o.Settings
	if s == nil {
		return
	}
	if t := s.Template; t != nil {
		spec.LaunchTemplate = &v1alpha1.LaunchTemplate{ID: t.ID, Version: t.Version}
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

// adoptHook names the hook of a transition, where there is no doubt which: the
// only one, or the one of kOps. One that CodeDeploy looks after is answered by
// nobody else (AWS CodeDeploy User Guide, "Integrating CodeDeploy with Amazon EC2
// Auto Scaling").
func adoptHook(hooks *v1alpha1.LifecycleHooks, o Observed, terminating bool) (notes []string) {
	usual, key := v1alpha1.LaunchHook, "launch"
	if terminating {
		usual, key = v1alpha1.TerminateHook, "terminate"
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
		return []string{fmt.Sprintf("which %s hook is Lifeboat's to answer is not clear: name one of %s in hooks.%s.name, or leave it out for one of its own", key, strings.Join(found, ", "), key)}
	}
	hook := &v1alpha1.LifecycleHook{Name: found[0]}
	if terminating {
		hooks.Terminate = hook
	} else {
		hooks.Launch = hook
	}
	return []string{fmt.Sprintf("Lifeboat answers the %s hook %s from now on; that others do so too, such as kOps' nodeup or aws-node-termination-handler, does no harm and is not needed any more", key, found[0])}
}

// Where tools write down what they call the group.
func nameTags() []string {
	return []string{TagObject, "kops.k8s.io/instancegroup", tagEKS, "alpha.eksctl.io/nodegroup-name"}
}

var notInNames = regexp.MustCompile(`[^a-z0-9.-]+`)

// ObjectName is what to call the NodeGroup of a group: as the tool that made the
// group calls it, for that is what its nodes are labelled with, and what policies
// select them by; else by the group's own name.
func ObjectName(o Observed) string {
	name := o.Name
	for _, key := range nameTags() {
		if o.Tags[key] != "" {
			name = o.Tags[key]
			break
		}
	}
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-.")
	const most = 63 // it becomes the value of a label
	return strings.Trim(name[:min(len(name), most)], "-.")
}
