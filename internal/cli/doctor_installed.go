package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// clusterNotChecked is the ID of the finding about a cluster without an answer.
const clusterNotChecked = "cluster-not-checked"

// componentLabel names the part of Lifeboat's chart that a pod belongs to.
const componentLabel = "app.kubernetes.io/component"

// helmRelease is the annotation that Helm sets on the objects of a release
// (helm.sh/helm/v4/pkg/action/validate.go).
const helmRelease = "meta.helm.sh/release-name"

// readInstallation reads what the cluster says about Lifeboat. A part that cannot be
// read is a finding, and the others go on.
func (d *doctorRun) readInstallation(ctx context.Context) {
	if d.kube == nil {
		return
	}
	d.progress.Step("looking for Lifeboat in the cluster")
	d.lifeboat = &doctor.Installation{}
	process, err := d.sandboxProcess()
	if err != nil {
		d.lifeboat.Failed = []doctor.Unread{{Part: doctor.PartSandbox, Err: err}}
	}
	d.lifeboat.Process = process
	for _, part := range []struct {
		part doctor.Part
		read func(context.Context, *doctor.Installation) error
	}{{doctor.PartAPI, d.readCRDs}, {doctor.PartController, d.readController}, {doctor.PartLeader, d.readLease}, {doctor.PartAgents, d.readAgents}} {
		if err := part.read(ctx, d.lifeboat); err != nil {
			d.lifeboat.Failed = append(d.lifeboat.Failed, doctor.Unread{Part: part.part, Err: err})
		}
	}
	// A ServiceAccount without Helm's annotation does not belong to a release: the sandbox makes one
	// for its process. If the account cannot be read, the controller of the same chart tells.
	var account corev1.ServiceAccount
	found, err := d.kube.findController(ctx, &account)
	d.lifeboat.Account = found || err != nil && d.lifeboat.Controller != nil
	d.lifeboat.Release = account.Annotations[helmRelease] != "" || d.lifeboat.Controller != nil
	if text := d.lifeboat.Summary(d.now()); text != "" {
		d.notes = append(d.notes, text)
	}
}

// sandboxProcess returns the state of lifeboatd in the sandbox, or nil.
func (d *doctorRun) sandboxProcess() (*doctor.Process, error) {
	if d.session.flags.Sandbox == "" {
		return nil, nil
	}
	found, err := d.findSandbox(d.session.flags.Sandbox)
	return found.lifeboatd, err
}

// installed reports what keeps Lifeboat from acting on notices.
func (d *doctorRun) installed(context.Context) ([]finding.Finding, error) {
	if d.lifeboat == nil {
		return []finding.Finding{{
			Severity: finding.Unknown, ID: clusterNotChecked, Object: "cluster",
			Problem: "the cluster was not checked, so it is not known whether Lifeboat runs and reads the queue",
			Fix:     "check --kubeconfig and --context; to check only the AWS resources, add --fail-on broken",
		}}, nil
	}
	return d.lifeboat.Findings(d.queue, d.now()), nil
}

func (d *doctorRun) readCRDs(ctx context.Context, i *doctor.Installation) error {
	err := d.kube.list(ctx, "interruptions", &v1beta1.InterruptionList{}, client.Limit(1))
	if command.IsNotInstalled(err) {
		i.CRDsMissing = true
		return nil
	}
	return err
}

func (d *doctorRun) readController(ctx context.Context, i *doctor.Installation) error {
	var own appsv1.Deployment
	found, err := d.kube.findController(ctx, &own)
	if err != nil || !found {
		return err
	}
	desired := 1
	if own.Spec.Replicas != nil {
		desired = int(*own.Spec.Replicas)
	}
	for _, c := range own.Spec.Template.Spec.Containers {
		d.controllerArgs = append(append(d.controllerArgs, c.Command...), c.Args...)
	}
	if hooks := argument(d.controllerArgs, "--lifecycle-hooks"); hooks != "" {
		d.hookPatterns = strings.Split(hooks, ",")
	}
	i.Controller = &doctor.Program{
		Object: "deployment " + own.Namespace + "/" + own.Name, Version: own.Labels[versionLabel], Desired: desired, Ready: int(own.Status.ReadyReplicas),
		Queue: argument(d.controllerArgs, "--queue-url"),
	}
	if i.Controller.Ready < desired {
		i.Controller.Waiting, err = d.waitingReason(ctx, controllerComponent)
	}
	return err
}

// waitingReason returns why a container of a part does not run, for example
// CrashLoopBackOff, or "".
func (d *doctorRun) waitingReason(ctx context.Context, component string) (string, error) {
	var pods corev1.PodList
	err := d.kube.list(ctx, "the pods of Lifeboat", &pods, client.InNamespace(lifeboatNamespace), client.MatchingLabels{nameLabel: "lifeboat", componentLabel: component})
	for _, p := range pods.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Waiting != nil {
				return c.State.Waiting.Reason, nil
			}
		}
	}
	return "", err
}

func (d *doctorRun) readLease(ctx context.Context, i *doctor.Installation) error {
	var lease coordinationv1.Lease
	found, err := d.kube.findController(ctx, &lease)
	if err != nil || !found {
		return err
	}
	i.Lease = &doctor.Lease{}
	if s := lease.Spec; s.HolderIdentity != nil && s.RenewTime != nil && s.LeaseDurationSeconds != nil {
		i.Lease = &doctor.Lease{Holder: *s.HolderIdentity, Renewed: s.RenewTime.Time, Duration: time.Duration(*s.LeaseDurationSeconds) * time.Second}
	}
	return nil
}

func (d *doctorRun) readAgents(ctx context.Context, i *doctor.Installation) error {
	agents, err := d.kube.findAgents(ctx)
	if err != nil || agents == nil {
		return err
	}
	d.agentNamespace = agents.Namespace
	i.Agents = &doctor.Program{
		Object: "daemonset " + agents.Namespace + "/" + agents.Name, Version: agents.Labels[versionLabel],
		Desired: int(agents.Status.DesiredNumberScheduled), Ready: int(agents.Status.NumberReady),
	}
	return nil
}

// findAgents returns the DaemonSet of the agents, or nil. The chart's value agent.namespace
// says where it is. A user who may not list all namespaces sees that of the controller.
func (c cluster) findAgents(ctx context.Context) (*appsv1.DaemonSet, error) {
	var all appsv1.DaemonSetList
	labels := client.MatchingLabels{nameLabel: "lifeboat", componentLabel: "agent"}
	err := c.list(ctx, "the agents", &all, labels)
	if apierrors.IsForbidden(err) {
		err = c.list(ctx, "the agents", &all, labels, client.InNamespace(lifeboatNamespace))
	}
	if err != nil || len(all.Items) == 0 {
		return nil, err
	}
	newest := slices.MaxFunc(all.Items, func(a, b appsv1.DaemonSet) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return &newest, nil
}

// findController reads the object lifeboat-controller, and reports whether it exists.
func (c cluster) findController(ctx context.Context, into client.Object) (bool, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	err := c.Get(ctx, client.ObjectKey{Namespace: lifeboatNamespace, Name: lifeboatController}, into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", lifeboatController, err)
	}
	return true, nil
}
