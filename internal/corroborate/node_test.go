package corroborate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
)

const id = "i-0a1b2c3d4e5f60718"

func node(name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

func TestNode(t *testing.T) {
	instance := cloud.Instance{ID: id, State: "running", DNSName: "ip-10-0-1-5.eu-west-1.compute.internal", Addresses: []string{"10.0.1.5", "10.0.1.77"}}
	byResource := instance
	byResource.DNSName = id + ".eu-west-1.compute.internal"
	gone := cloud.Instance{ID: id, State: "terminated"}
	for name, tc := range map[string]struct {
		node     *corev1.Node
		instance *cloud.Instance
		want     corroborate.Answer
	}{
		"EKS: the private DNS name":                      {node("ip-10-0-1-5.eu-west-1.compute.internal"), &instance, corroborate.Agree},
		"the name in another domain, from DHCP options":  {node("ip-10-0-1-5.corp.example"), &instance, corroborate.Agree},
		"the IP name, and EC2 names by resource":         {node("ip-10-0-1-5.eu-west-1.compute.internal"), &byResource, corroborate.Agree},
		"EKS: the resource name":                         {node(id + ".eu-west-1.compute.internal"), &byResource, corroborate.Agree},
		"kOps: the instance id":                          {node(id), &instance, corroborate.Agree},
		"a name of one's own, with an address":           {node("worker-7", "10.0.1.5"), &instance, corroborate.Agree},
		"a name of one's own, with a second address":     {node("worker-7", "fd00::1", "10.0.1.77"), &instance, corroborate.Agree},
		"the IP name of another instance":                {node("ip-10-0-1-6.eu-west-1.compute.internal", "10.0.1.5"), &instance, corroborate.Differ},
		"the resource name of another instance":          {node("i-0ffffffffffffffff.eu-west-1.compute.internal", "10.0.1.5"), &instance, corroborate.Differ},
		"a name of one's own, with another address":      {node("worker-7", "10.0.1.6"), &instance, corroborate.Differ},
		"a name of one's own, without address":           {node("worker-7"), &instance, corroborate.Unknown},
		"EC2 does not know the instance":                 {node("ip-10-0-1-5.eu-west-1.compute.internal"), nil, corroborate.Unknown},
		"EC2 names no terminated instance":               {node("ip-10-0-1-5.eu-west-1.compute.internal"), &gone, corroborate.Unknown},
		"an address like one, and a name that has none":  {node("ip-worker", "10.0.1.6"), &instance, corroborate.Differ},
		"a name of one's own, and EC2 has no address":    {node("worker-7", "10.0.1.6"), &gone, corroborate.Unknown},
		"the resource name of an instance that is ended": {node(id + ".ec2.internal"), &gone, corroborate.Agree},
	} {
		t.Run(name, func(t *testing.T) {
			got := corroborate.Node(tc.node, tc.instance)
			if got.Answer != tc.want || got.Agrees() != (got.Why == "") {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestNodeOfClaim(t *testing.T) {
	claim := corroborate.Claim{Name: "web-1", UID: "uid-1", NodeName: "a", InstanceID: id}
	owned := func(name, claim string, uid types.UID) *corev1.Node {
		n := node(name)
		n.OwnerReferences = []metav1.OwnerReference{{Kind: "NodeClaim", Name: claim, UID: uid}}
		return n
	}
	unregistered := claim
	unregistered.NodeName = ""
	for name, tc := range map[string]struct {
		node     *corev1.Node
		claim    corroborate.Claim
		instance string
		want     corroborate.Answer
	}{
		"all agree":                      {owned("a", "web-1", "uid-1"), claim, id, corroborate.Agree},
		"another node names the owner":   {owned("b", "web-1", "uid-1"), claim, id, corroborate.Differ},
		"an owner of an earlier life":    {owned("a", "web-1", "uid-2"), claim, id, corroborate.Differ},
		"another instance":               {owned("a", "web-1", "uid-1"), claim, "i-0ffffffffffffffff", corroborate.Differ},
		"Karpenter knows no node yet":    {owned("a", "web-1", "uid-1"), unregistered, id, corroborate.Unknown},
		"the node names no owner at all": {node("a"), claim, id, corroborate.Differ},
	} {
		t.Run(name, func(t *testing.T) {
			if got := corroborate.NodeOfClaim(tc.node, tc.claim, tc.instance); got.Answer != tc.want || got.Agrees() != (got.Why == "") {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
