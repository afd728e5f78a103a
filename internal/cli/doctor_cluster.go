package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// The labels by which the Helm charts of other tools are found.
const (
	nameLabel     = "app.kubernetes.io/name"
	versionLabel  = "app.kubernetes.io/version"
	karpenterName = "karpenter"
	nthName       = "aws-node-termination-handler"
)

// Lifeboat's own Deployment.
const (
	lifeboatNamespace  = "lifeboat-system"
	lifeboatController = "lifeboat-controller"
)

// tools finds other tools that answer interruptions in the cluster. If it
// cannot read something, it adds a note and assumes that the tool is absent.
func (d *doctorRun) tools(ctx context.Context) doctor.Cluster {
	if d.kube == nil {
		return doctor.Cluster{}
	}
	d.progress.Step("looking for other tools that answer interruptions in the cluster")
	found, err := findTools(ctx, *d.kube)
	found.Lifeboat, found.Nodes = d.lifeboat.Running(d.now()), d.nodes
	if err == nil && found.Karpenter != nil {
		err = d.defeated(ctx, &found)
	}
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("The cluster was not checked: %v.", err))
	}
	return found
}

// findTools finds other tools.
func findTools(ctx context.Context, c cluster) (found doctor.Cluster, _ error) {
	var deployments appsv1.DeploymentList
	if err := c.list(ctx, "deployments", &deployments); err != nil {
		return found, err
	}
	for _, o := range deployments.Items {
		found.Workloads = append(found.Workloads, doctor.WorkloadOf("deployment "+o.Namespace+"/"+o.Name, o.Labels, o.Spec.Template.Spec))
		switch o.Labels[nameLabel] {
		case karpenterName:
			found.Karpenter = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "INTERRUPTION_QUEUE", "--interruption-queue")
			shift := tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "ENABLE_ZONAL_SHIFT", "--enable-zonal-shift").Queue
			found.Karpenter.ZonalShift, _ = strconv.ParseBool(shift)
		case nthName:
			found.NTH = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
		}
	}
	var daemons appsv1.DaemonSetList
	if err := c.list(ctx, "daemon sets", &daemons); err != nil {
		return found, err
	}
	for _, o := range daemons.Items {
		found.Workloads = append(found.Workloads, doctor.WorkloadOf("daemonset "+o.Namespace+"/"+o.Name, o.Labels, o.Spec.Template.Spec))
		if o.Labels[nameLabel] == nthName {
			found.NTH = tool("daemonset", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
		}
	}
	return found, nil
}

// tool describes a program by the value of an environment variable or of a flag
// of its pods.
func tool(kind string, meta metav1.ObjectMeta, spec corev1.PodSpec, variable, flag string) *doctor.Tool {
	t := &doctor.Tool{Object: kind + " " + meta.Namespace + "/" + meta.Name, Namespace: meta.Namespace, Name: meta.Name, Version: meta.Labels[versionLabel]}
	for _, c := range spec.Containers {
		for _, e := range c.Env {
			if e.Name == variable {
				t.Queue = e.Value
			}
		}
		arguments := append(append([]string{}, c.Command...), c.Args...)
		for i, a := range arguments {
			if value, ok := strings.CutPrefix(a, flag+"="); ok {
				t.Queue = value
			} else if a == flag && i+1 < len(arguments) {
				t.Queue = arguments[i+1]
			}
		}
	}
	return t
}
