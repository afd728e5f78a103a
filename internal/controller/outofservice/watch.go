package outofservice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// nodeChanged passes what can change the decision: heartbeats of thousands of Nodes cannot.
var nodeChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return signature(e.Object) != (nodeState{ready: true}) },
	UpdateFunc: func(e event.UpdateEvent) bool { return signature(e.ObjectNew) != signature(e.ObjectOld) },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

type nodeState struct {
	ready, tainted bool
	instance       string // the one that Lifeboat tainted the Node for
}

func signature(o client.Object) nodeState {
	node, ok := o.(*corev1.Node)
	if !ok {
		return nodeState{}
	}
	instance, _ := mutate.IsOutOfService(node)
	return nodeState{nodeindex.Ready(node), mutate.HasOutOfServiceTaint(node), instance}
}

func nodeOf(_ context.Context, o client.Object) []reconcile.Request {
	in, ok := o.(*v1beta1.Interruption)
	if !ok {
		return nil
	}
	name := in.Spec.NodeName
	if name == "" {
		name = in.Status.NodeName
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
