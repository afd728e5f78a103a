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

	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
)

// Where other tools are found: the labels of their Helm charts.
const (
	nameLabel     = "app.kubernetes.io/name"
	versionLabel  = "app.kubernetes.io/version"
	karpenterName = "karpenter"
	nthName       = "aws-node-termination-handler"
)

// Lifeboat's controller.
const (
	lifeboatNamespace  = "lifeboat-system"
	lifeboatController = "lifeboat-controller"
)

// tools finds out who else answers interruptions in the cluster. What cannot be
// looked at is noted, and taken not to be there.
func (d *examination) tools(ctx context.Context) diagnose.Cluster {
	if d.kube == nil {
		return diagnose.Cluster{}
	}
	d.progress.Step("looking at who else answers interruptions in the cluster")
	found, err := findTools(ctx, *d.kube)
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("The cluster was not looked at: %v.", err))
	}
	return found
}

func findTools(ctx context.Context, c cluster) (diagnose.Cluster, error) {
	var found diagnose.Cluster
	label := client.MatchingLabels{nameLabel: karpenterName}
	var deployments appsv1.DeploymentList
	if err := c.list(ctx, "deployments of Karpenter", &deployments, label); err != nil {
		return found, err
	}
	for _, o := range deployments.Items {
		found.Karpenter = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "INTERRUPTION_QUEUE", "--interruption-queue")
	}
	label[nameLabel] = nthName
	if err := c.list(ctx, "deployments of AWS Node Termination Handler", &deployments, label); err != nil {
		return found, err
	}
	for _, o := range deployments.Items {
		found.NTH = tool("deployment", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
	}
	var daemons appsv1.DaemonSetList
	if err := c.list(ctx, "daemon sets of AWS Node Termination Handler", &daemons, label); err != nil {
		return found, err
	}
	for _, o := range daemons.Items {
		found.NTH = tool("daemonset", o.ObjectMeta, o.Spec.Template.Spec, "QUEUE_URL", "--queue-url")
	}
	running, err := controllers(ctx, c)
	found.Lifeboat = running
	return found, err
}

// controllers is how many of Lifeboat's controllers are ready.
func controllers(ctx context.Context, c cluster) (*int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var own appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: lifeboatNamespace, Name: lifeboatController}, &own)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the deployment %s: %w", lifeboatController, err)
	}
	ready := int(own.Status.ReadyReplicas)
	if apierrors.IsNotFound(err) {
		ready = 0
	}
	return &ready, nil
}

// tool is a program as its pods are configured: by a variable of the environment,
// or a flag.
func tool(kind string, meta metav1.ObjectMeta, spec corev1.PodSpec, variable, flag string) *diagnose.Tool {
	t := &diagnose.Tool{Object: kind + " " + meta.Namespace + "/" + meta.Name, Version: meta.Labels[versionLabel]}
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
