package sandbox

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const chartPart = "chart"

// hookNamespace is where hooks of policies run their Jobs.
const hookNamespace = "node-hooks"

// install installs the chart as `helm install` does, except for its workloads. The sandbox has no
// container runtime, so lifeboatd runs as a process, with the arguments and the ServiceAccount of
// the chart's Deployment.
func (s *Sandbox) install(ctx context.Context, detail func(string)) error {
	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	m, err := chart.Render(ctx, chart.Options{Values: s.chartValues(), Cluster: s.RESTConfig()})
	if err != nil {
		return err
	}
	s.controllerArgs, err = controllerArgs(m.Objects)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, c, m.CRDs); err != nil {
		return err
	}
	for _, name := range []string{chart.Namespace, hookNamespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreAlreadyExists(c.Create(ctx, ns)); err != nil {
			return fmt.Errorf("creating the namespace %s: %w", name, err)
		}
	}
	objects := slices.DeleteFunc(m.Objects, isWorkload)
	if err := applyAll(ctx, c, objects); err != nil {
		return err
	}
	detail(fmt.Sprintf("%d CRDs and %d objects of the Helm chart", len(m.CRDs), len(objects)))
	return waitEstablished(ctx, c, m.CRDs)
}

// chartValues are the values of a user's values file. The image is never pulled.
func (s *Sandbox) chartValues() map[string]any {
	st := s.State()
	aws := map[string]any{"queueURL": st.QueueURL, "account": st.Account, "region": st.Region}
	if st.KarpenterQueueURL != "" && !s.opts.KarpenterOwnQueue {
		aws["karpenterQueueURL"] = st.KarpenterQueueURL
	}
	return map[string]any{
		"image": map[string]any{"repository": lifeboatPart}, "aws": aws,
		"hooks": map[string]any{"namespaces": []any{hookNamespace}},
		// Servers for webhooks run on this machine.
		"webhooks":   map[string]any{"allowHTTP": true, "allowPrivate": true},
		"controller": map[string]any{"extraArgs": []any{"--webhook-allow-loopback"}},
		"karpenter":  map[string]any{"guard": map[string]any{"enabled": s.opts.KarpenterGuard}},

		"outOfServiceTaint":     map[string]any{"enabled": s.opts.OutOfServiceTaint},
		"waitForDeregistration": map[string]any{"enabled": s.opts.WaitForDeregistration},
	}
}

// isWorkload reports whether an object creates pods, or is about these pods.
func isWorkload(obj *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Deployment", "DaemonSet", "PodDisruptionBudget"}, obj.GetKind())
}

// controllerArgs are the arguments of lifeboatd in the chart's Deployment.
func controllerArgs(objects []*unstructured.Unstructured) ([]string, error) {
	for _, obj := range objects {
		if obj.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &d); err != nil {
			return nil, fmt.Errorf("reading the chart's Deployment: %w", err)
		}
		return d.Spec.Template.Spec.Containers[0].Args, nil
	}
	return nil, fmt.Errorf("reading the chart: it has no Deployment")
}

// applyAll applies objects in order, under the name that Helm uses.
func applyAll(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("helm"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// waitEstablished waits until the API server serves the new kinds.
func waitEstablished(ctx context.Context, c client.Client, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		err := waitFor(ctx, "CRD "+crd.GetName(), func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, fmt.Errorf("reading it: %w", err)
			}
			conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
			for _, cond := range conditions {
				m, _ := cond.(map[string]any)
				if m["type"] == "Established" && m["status"] == "True" {
					return true, nil
				}
			}
			return false, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
