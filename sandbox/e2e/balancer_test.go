//go:build e2e

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// bindingCRD is the part of the CRD of the AWS Load Balancer Controller that Lifeboat reads. Its
// types are in no module with a version (kubernetes-sigs/aws-load-balancer-controller
// apis/elbv2/v1beta1).
const bindingCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: targetgroupbindings.elbv2.k8s.aws, annotations: {api-approved.kubernetes.io: "test"}}
spec:
  group: elbv2.k8s.aws
  names: {kind: TargetGroupBinding, listKind: TargetGroupBindingList, plural: targetgroupbindings, singular: targetgroupbinding}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {targetGroupARN: {type: string}, targetType: {type: string}}
`

// balancer is a substitute for the AWS Load Balancer Controller, and knows one target group with
// instances as targets.
type balancer struct {
	*rig
	api   *elb.Client
	group string

	mu           sync.Mutex
	held         bool                 // deregister nothing
	deregistered map[string]time.Time // when the call was about to be made, by instance
}

// balance creates a target group with its binding, and keeps its targets until the test ends.
func (r *rig) balance() *balancer {
	r.t.Helper()
	b := &balancer{rig: r, api: elb.NewFromConfig(r.AWSConfig()), deregistered: map[string]time.Time{}, held: true}
	made, err := b.api.CreateTargetGroup(r.t.Context(), &elb.CreateTargetGroupInput{
		Name: aws.String("web"), Port: aws.Int32(30080), Protocol: types.ProtocolEnumTcp, TargetType: types.TargetTypeEnumInstance,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	b.group = aws.ToString(made.TargetGroups[0].TargetGroupArn)
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "TargetGroupBinding", "metadata": map[string]any{"name": "web", "namespace": "default"},
		"spec": map[string]any{"targetGroupARN": b.group, "targetType": "instance"},
	}}
	var crd unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(bindingCRD), &crd); err != nil {
		r.t.Fatal(err)
	}
	r.apply(&crd)
	r.until("the API server to serve TargetGroupBindings", time.Minute, func(ctx context.Context) (bool, error) {
		err := r.client.Create(ctx, binding)
		return err == nil, err
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx := r.t.Context(); sleep.For(ctx, 100*time.Millisecond); {
			_ = b.reconcile(ctx) // it repeats
		}
	}()
	r.t.Cleanup(func() { <-ended })
	return b
}

// hold sets whether nodes stay targets although they have to leave.
func (b *balancer) hold(held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = held
}

// reconcile registers nodes that may get traffic, and deregisters the others.
func (b *balancer) reconcile(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := b.client.List(ctx, &nodes); err != nil {
		return err
	}
	targets, err := b.targets(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range nodes.Items {
		id := nodeindex.InstanceID(&nodes.Items[i])
		state := targets[id]
		one := []types.TargetDescription{{Id: aws.String(id)}}
		switch fits := fitsAsTarget(&nodes.Items[i]); {
		case fits && state == "":
			_, err = b.api.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &b.group, Targets: one})
		case !fits && state != "" && state != types.TargetHealthStateEnumDraining && !b.held:
			b.deregistered[id] = time.Now()
			_, err = b.api.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: &b.group, Targets: one})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fitsAsTarget reports whether the controller makes a node a target: a cordoned node stays one, but
// not one with one of these labels or taints (kubernetes-sigs/aws-load-balancer-controller
// pkg/backend/endpoint_utils.go: GetTrafficProxyNodeSelector, IsNodeSuitableAsTrafficProxy).
func fitsAsTarget(node *corev1.Node) bool {
	for _, label := range []string{"node-role.kubernetes.io/master", "node.kubernetes.io/exclude-from-external-load-balancers", "alpha.service-controller.kubernetes.io/exclude-balancer"} {
		if _, has := node.Labels[label]; has {
			return false
		}
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "karpenter.sh/disrupted" && t.Effect == corev1.TaintEffectNoSchedule
	})
}

// targets returns the states of the group's targets, by instance.
func (b *balancer) targets(ctx context.Context) (map[string]types.TargetHealthStateEnum, error) {
	out, err := b.api.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &b.group})
	if err != nil {
		return nil, err
	}
	states := map[string]types.TargetHealthStateEnum{}
	for _, d := range out.TargetHealthDescriptions {
		states[aws.ToString(d.Target.Id)] = d.TargetHealth.State
	}
	return states, nil
}
