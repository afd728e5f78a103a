package nodeindex

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUnreachableNodes(t *testing.T) {
	const uuid = "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
	for name, tc := range map[string]struct {
		node, uuid, provider string
		labels               map[string]string
		taints               []corev1.Taint
		want                 bool
	}{
		"an instance by its UUID":                      {node: "a", uuid: uuid, want: true},
		"an instance by its UUID in capitals":          {node: "a", uuid: "EC2A1B2C-3D4E-5F60-7182-93A4B5C6D7E8", want: true},
		"an instance by its name":                      {node: "ip-10-0-1-5.eu-west-1.compute.internal", want: true},
		"an instance by its name in us-east-1":         {node: "ip-10-0-1-5.ec2.internal", want: true},
		"an instance of a managed node group":          {node: "a", labels: map[string]string{"eks.amazonaws.com/nodegroup": "web"}, want: true},
		"an instance with a provider id":               {node: "ip-10-0-1-5.ec2.internal", uuid: uuid, provider: "aws:///us-east-1a/i-0a1b2c3d4e5f60718"},
		"a machine in a rack":                          {node: "rack7", uuid: "4c4c4544-0035-4b10-8054-b4c04f4c5a32"},
		"a node of kind":                               {node: "kind-worker", provider: "kind://docker/kind/kind-worker", uuid: uuid},
		"a node that the cloud controller is to visit": {node: "a", uuid: uuid, taints: []corev1.Taint{{Key: taintUninitialized}}},
	} {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: tc.node, Labels: tc.labels}, Spec: corev1.NodeSpec{ProviderID: tc.provider, Taints: tc.taints}}
		node.Status.NodeInfo.SystemUUID = tc.uuid
		if got := IsUnreachable(&node); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if got := slim(&node, newInterner()); IsUnreachable(got) != tc.want {
			t.Errorf("%s: the cache forgets what tells", name)
		}
	}
}
