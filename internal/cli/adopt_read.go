package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/adopt"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	queueVariable = "INTERRUPTION_QUEUE"
	queueFlag     = "--interruption-queue"
	// annotationQueue, on Karpenter's Deployment, is the queue that it read before the cut-over.
	annotationQueue = "lifeboat.dev/karpenter-interruption-queue"
	// annotationRelease is Helm's.
	annotationRelease = "meta.helm.sh/release-name"
)

// adoption is a run of `adopt karpenter`.
type adoption struct {
	*session

	flags adoptionFlags
	back  bool
	kube  cluster
	facts adopt.Facts
	plan  adopt.Plan
}

// readAdoption reads the cluster and the account, and plans.
func (s *session) readAdoption(ctx context.Context, f adoptionFlags, back bool) (*adoption, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	a := &adoption{session: s, flags: f, back: back, kube: c}
	found, err := c.karpenterDeployment(ctx)
	if err != nil {
		return nil, err
	}
	a.facts.Karpenter, a.facts.Chart = describeKarpenter(found), f.chart
	a.facts.Tool = adopt.Tool(f.tool)
	if f.tool == "" {
		a.facts.Tool = adopt.Kubectl
		if a.facts.Karpenter.Release != "" {
			a.facts.Tool = adopt.Helm
		}
	}
	if a.facts.Tool == adopt.Helm && a.facts.Karpenter.Release == "" {
		return nil, usageErrorf("Helm did not install the Deployment %s/%s: write --tool kubectl or --tool terraform", found.Namespace, found.Name)
	}
	if f.runHelm && a.facts.Tool != adopt.Helm {
		return nil, usageErrorf("--run-helm: Helm did not install the Deployment %s/%s: remove the flag", found.Namespace, found.Name)
	}
	d := &doctorRun{session: s, flags: f.doctor, progress: terminal.NewProgress(s.err)}
	defer d.progress.Stop()
	if err := a.readLifeboat(ctx, d); err != nil {
		return nil, err
	}
	a.readRules(d)
	a.replan()
	return a, nil
}

func (a *adoption) replan() {
	a.plan = adopt.CutOver(a.facts)
	if a.back {
		a.plan = adopt.Back(a.facts)
	}
}

// readLifeboat finds out whether Lifeboat receives notices and acts on them.
func (a *adoption) readLifeboat(ctx context.Context, d *doctorRun) error {
	d.kube = &a.kube
	d.readInstallation(ctx)
	all, failed := d.examine(ctx, []checkGroup{
		{"AWS resources", d.awsResources, true},
		{"Lifeboat in the cluster", d.installed, true},
		{"CRDs", d.crds, true},
		{"permissions of the controller", d.controllerPermissions, false},
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		a.facts.Unready = append(a.facts.Unready, "The doctor could not check it: "+failed.Error())
	}
	a.facts.Unready = append(a.facts.Unready, unready(all, a.flags.skipProbe)...)
	if argument(d.controllerArgs, "--mode") == "Observe" {
		a.facts.Unready = append(a.facts.Unready, "Lifeboat runs with mode Observe, so it acts on no notice. Set mode=Act first: "+
			"until the cut-over both programs act, and that is safe")
	}
	if err := a.readRecords(ctx); err != nil {
		return err
	}
	var around doctor.Cluster
	if err := d.defeated(ctx, &around); err != nil {
		return err
	}
	a.facts.Guard, a.facts.Defeated = around.Guard, around.Void
	a.facts.Polls = doctor.Polls(a.facts.Karpenter.Version)
	a.facts.Forwards = a.facts.Karpenter.Queue != "" && doctor.QueueName(argument(d.controllerArgs, "--karpenter-queue-url")) == doctor.QueueName(a.facts.Karpenter.Queue)
	return nil
}

// readRecords reads pauses, and the Interruptions that are not completed.
func (a *adoption) readRecords(ctx context.Context) error {
	pauses, err := a.kube.pauses(ctx)
	if err != nil {
		return err
	}
	for i := range pauses {
		if p := &pauses[i]; record.PauseInForce(p, a.now()) && record.StopsEverything(p) {
			a.facts.Unready = append(a.facts.Unready, record.PauseGate(p).Why+", also of spot interruptions: `"+record.ResumeCommand(p, a.name)+"`")
		}
	}
	var open v1beta1.InterruptionList
	if err := a.kube.list(ctx, "interruptions", &open); err != nil && !command.IsNotInstalled(err) {
		return err
	}
	for i := range open.Items {
		if in := &open.Items[i]; !notice.Finished(in) {
			a.facts.Open = append(a.facts.Open, in.Name)
		}
	}
	return nil
}

// unready returns the findings that keep notices from Lifeboat. What the cut-over itself repairs is none. strict
// counts what could not be checked; without it a probe shows that.
func unready(all []finding.Finding, strict bool) []string {
	var why []string
	for _, f := range all {
		counts := f.Severity == finding.Broken || strict && f.Severity == finding.Unknown
		if f.ID == "karpenter-same-queue" || f.ID == "karpenter-polls" || !counts {
			continue
		}
		why = append(why, fmt.Sprintf("%s (%s): %s. Fix: %s", f.Object, f.ID, f.Problem, f.Fix))
	}
	return why
}

// readRules finds the rules that fill Karpenter's queue.
func (a *adoption) readRules(d *doctorRun) {
	k := &a.facts.Karpenter
	if d.account == nil {
		a.facts.RulesUnread = "the account was not read"
		return
	}
	queues := doctor.SpotQueues(*d.account, d.wiring)
	k.Was = cmp.Or(a.flags.queue, k.Was)
	if k.Was == "" && k.Queue == "" {
		var own []string
		for _, q := range queues {
			if q.Karpenters {
				own = append(own, q.Name)
			}
		}
		if len(own) == 1 {
			k.Was = own[0]
		}
	}
	name := doctor.QueueName(cmp.Or(k.Queue, k.Was))
	for _, q := range queues {
		if q.Name == name {
			a.facts.Rules = q.Rules
		}
	}
	for _, denied := range d.account.Denied {
		if strings.HasPrefix(denied.Action, "events:") && len(a.facts.Rules) == 0 {
			a.facts.RulesUnread = "AWS denied " + denied.Action
		}
	}
}

// karpenterDeployment finds the Deployment of Karpenter.
func (c cluster) karpenterDeployment(ctx context.Context) (*appsv1.Deployment, error) {
	var all appsv1.DeploymentList
	if err := c.list(ctx, "deployments of Karpenter", &all, client.MatchingLabels{nameLabel: karpenterName}); err != nil {
		return nil, err
	}
	switch len(all.Items) {
	case 0:
		return nil, errors.New("the cluster has no Deployment with the label " + nameLabel + "=" + karpenterName + ": install Karpenter by its chart. " +
			"In EKS Auto Mode AWS runs Karpenter, and its settings cannot be changed")
	case 1:
		return &all.Items[0], nil
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Namespace+"/"+all.Items[i].Name)
	}
	return nil, fmt.Errorf("the cluster has several Deployments of Karpenter: %s. Remove those that are not in use", strings.Join(names, ", "))
}

// describeKarpenter reads what a plan needs from Karpenter's Deployment.
func describeKarpenter(d *appsv1.Deployment) adopt.Deployment {
	t := tool("deployment", d.ObjectMeta, d.Spec.Template.Spec, queueVariable, queueFlag)
	k := adopt.Deployment{
		Namespace: d.Namespace, Name: d.Name, Version: t.Version, Queue: t.Queue, Was: d.Annotations[annotationQueue],
		Release: d.Annotations[annotationRelease], RolledOut: isRolledOut(d),
	}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		if argument(append(slices.Clone(c.Command), c.Args...), queueFlag) != "" {
			k.Elsewhere = "the argument " + queueFlag
		}
		if v := queueEnv(c); v != nil && v.ValueFrom != nil {
			k.Elsewhere = "a reference (valueFrom) of the variable " + queueVariable
			k.Queue = cmp.Or(k.Queue, "(unknown)")
		}
	}
	return k
}

// queueEnv returns the variable of a container with Karpenter's queue; nil: there is none.
func queueEnv(c *corev1.Container) *corev1.EnvVar {
	for i := range c.Env {
		if c.Env[i].Name == queueVariable {
			return &c.Env[i]
		}
	}
	return nil
}

// isRolledOut reports whether all pods of a Deployment have its current template and are available.
func isRolledOut(d *appsv1.Deployment) bool {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	st := d.Status
	return st.ObservedGeneration >= d.Generation && st.UpdatedReplicas >= want && st.Replicas == st.UpdatedReplicas && st.AvailableReplicas >= want
}
