package cli

import (
	"cmp"
	"context"
	"errors"
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
	lifeboatName  = "lifeboat"
)

// Lifeboat's own Deployment.
const (
	lifeboatNamespace   = "lifeboat-system"
	lifeboatController  = "lifeboat-controller"
	controllerComponent = "controller"
)

// tools finds other tools that answer interruptions in the cluster. What it cannot read
// is unknown.
func (d *doctorRun) tools(ctx context.Context) doctor.Cluster {
	if d.kube == nil {
		return doctor.Cluster{}
	}
	d.progress.Step("looking for other tools that answer interruptions in the cluster")
	found, err := findTools(ctx, *d.kube)
	d.notChecked("other tools", err)
	found.Lifeboat, found.Nodes = d.lifeboat.Running(d.now()), d.nodes
	if found.Karpenter != nil {
		d.notChecked("other tools", d.defeated(ctx, &found))
	}
	return found
}

// findTools finds other tools.
func findTools(ctx context.Context, c cluster) (found doctor.Cluster, _ error) {
	var deployments appsv1.DeploymentList
	errDeployments := c.list(ctx, "deployments", &deployments)
	for _, o := range deployments.Items {
		if o.Spec.Replicas != nil && *o.Spec.Replicas == 0 {
			continue // it does not run
		}
		found.Workloads = append(found.Workloads, doctor.WorkloadOf("deployment "+o.Namespace+"/"+o.Name, o.Labels, o.Spec.Template.Spec))
		switch o.Labels[nameLabel] {
		case karpenterName:
			found.Karpenter = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "INTERRUPTION_QUEUE", "--interruption-queue")
			shift := tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "ENABLE_ZONAL_SHIFT", "--enable-zonal-shift").Queue
			found.Karpenter.ZonalShift, _ = strconv.ParseBool(shift)
		case nthName:
			found.NTH = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
		case lifeboatName:
			own := o.Namespace == lifeboatNamespace && o.Name == lifeboatController
			if o.Labels[componentLabel] == controllerComponent && !own {
				found.Twins = append(found.Twins, *tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "", "--queue-url"))
			}
		}
	}
	var daemons appsv1.DaemonSetList
	errDaemons := c.list(ctx, "daemon sets", &daemons)
	for _, o := range daemons.Items {
		found.Workloads = append(found.Workloads, doctor.WorkloadOf("daemonset "+o.Namespace+"/"+o.Name, o.Labels, o.Spec.Template.Spec))
		if o.Labels[nameLabel] == nthName {
			found.NTH = tool("daemonset", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
		}
	}
	return found, errors.Join(errDeployments, errDaemons)
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
		t.Queue = cmp.Or(argument(append(append([]string{}, c.Command...), c.Args...), flag), t.Queue)
	}
	return t
}

// argument returns the value of a flag; empty if there is none.
func argument(arguments []string, flag string) (value string) {
	for i, a := range arguments {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			value = v
		} else if a == flag && i+1 < len(arguments) {
			value = arguments[i+1]
		}
	}
	return value
}
