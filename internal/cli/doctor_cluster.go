package cli

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	found, patterns, err := findTools(ctx, *d.kube)
	d.hookPatterns = patterns
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("The cluster was not checked: %v.", err))
	}
	return found
}

// findTools finds other tools. It also returns how many of Lifeboat's
// controllers are ready, and the hook names that they are configured to answer.
func findTools(ctx context.Context, c cluster) (found doctor.Cluster, hooks []string, _ error) {
	label := client.MatchingLabels{nameLabel: karpenterName}
	var deployments appsv1.DeploymentList
	if err := c.list(ctx, "deployments of Karpenter", &deployments, label); err != nil {
		return found, nil, err
	}
	for _, o := range deployments.Items {
		found.Karpenter = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "INTERRUPTION_QUEUE", "--interruption-queue")
	}
	label[nameLabel] = nthName
	if err := c.list(ctx, "deployments of AWS Node Termination Handler", &deployments, label); err != nil {
		return found, nil, err
	}
	for _, o := range deployments.Items {
		found.NTH = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
	}
	var daemons appsv1.DaemonSetList
	if err := c.list(ctx, "daemon sets of AWS Node Termination Handler", &daemons, label); err != nil {
		return found, nil, err
	}
	for _, o := range daemons.Items {
		found.NTH = tool("daemonset", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
	}
	own, err := controller(ctx, c)
	if err != nil {
		return found, nil, err
	}
	found.Lifeboat = readyOf(own)
	if t := tool("deployment", own.ObjectMeta, own.Spec.Template.Spec, "", "--lifecycle-hooks"); t.Queue != "" {
		hooks = strings.Split(t.Queue, ",")
	}
	return found, hooks, nil
}

// controllers returns how many of Lifeboat's controllers are ready.
func controllers(ctx context.Context, c cluster) (*int, error) {
	own, err := controller(ctx, c)
	if err != nil {
		return nil, err
	}
	return readyOf(own), nil
}

func readyOf(own appsv1.Deployment) *int {
	ready := int(own.Status.ReadyReplicas)
	return &ready
}

// controller returns the Deployment of Lifeboat's controllers, or an empty one
// if it does not exist.
func controller(ctx context.Context, c cluster) (appsv1.Deployment, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var own appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: lifeboatNamespace, Name: lifeboatController}, &own)
	switch {
	case apierrors.IsNotFound(err):
		return appsv1.Deployment{}, nil
	case err != nil:
		return appsv1.Deployment{}, fmt.Errorf("reading the deployment %s: %w", lifeboatController, err)
	}
	return own, nil
}

// tool describes a program by the value of an environment variable or of a flag
// of its pods.
func tool(kind string, meta metav1.ObjectMeta, spec corev1.PodSpec, variable, flag string) *doctor.Tool {
	t := &doctor.Tool{Object: kind + " " + meta.Namespace + "/" + meta.Name, Version: meta.Labels[versionLabel]}
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
