package nodeindex

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kept is a node with everything that the transform keeps.
func kept(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "uid", ResourceVersion: "7", Generation: 2, CreationTimestamp: metav1.Unix(1, 0), DeletionTimestamp: &metav1.Time{Time: time.Unix(2, 0)},
			Labels:          map[string]string{"team": "db", corev1.LabelHostname: name},
			Annotations:     map[string]string{"lifeboat.dev/original-state": "{}", "karpenter.sh/do-not-disrupt": "true"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "NodeClaim", Name: "db-x", UID: "claim"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1", Unschedulable: true, Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:        corev1.NodeSystemInfo{BootID: "boot"},
			VolumesAttached: []corev1.AttachedVolume{{Name: "vol"}},
		},
	}
}

func TestSlimKeepsWhatIsRead(t *testing.T) {
	full := kept("a")
	full.OwnerReferences[0].APIVersion = "karpenter.sh/v1"
	full.OwnerReferences = append([]metav1.OwnerReference{{Kind: "Machine", Name: "m"}}, full.OwnerReferences...)
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	full.Annotations["csi.volume.kubernetes.io/nodeid"] = "big"
	full.Spec.PodCIDRs = []string{"10.0.0.0/24"}
	full.Status.Images = []corev1.ContainerImage{{Names: []string{"big"}}}
	full.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	full.Status.Addresses = []corev1.NodeAddress{{Address: "10.0.0.1"}}
	full.Status.Conditions[0].Message = "kubelet is posting ready status"
	full.Status.Conditions = append(full.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure})
	full.Status.NodeInfo.OSImage = "big"
	full.Status.VolumesInUse = []corev1.UniqueVolumeName{"vol"}
	got, err := Slim()(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept("a"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlimmingAgainChangesNothing(t *testing.T) {
	slim := Slim()
	for _, node := range []*corev1.Node{kept("a"), {}} {
		want := node.DeepCopy()
		once, err := slim(node)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := slim(once)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, twice); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestLabelsAreInterned(t *testing.T) {
	s := newInterner()
	address := func(node *corev1.Node) (key, value *byte) {
		labels := slim(node, s).Labels
		for k := range labels {
			if k == "team" {
				key = unsafe.StringData(k)
			}
		}
		return key, unsafe.StringData(labels["team"])
	}
	key1, value1 := address(fresh("one"))
	key2, value2 := address(fresh("two"))
	if key1 != key2 || value1 != value2 {
		t.Error("two nodes hold the same text twice")
	}
}

// A policy, a node selector or a topology key may name any label, the host name too.
func TestCachedNodesHaveAllTheirLabels(t *testing.T) {
	transform := Slim()
	for _, name := range []string{"one", "two"} {
		want := kept(name).Labels
		got, err := transform(fresh(name))
		if err != nil {
			t.Fatal(err)
		}
		node, _ := got.(*corev1.Node)
		if diff := cmp.Diff(want, node.Labels); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", name, diff)
		}
	}
}

// fresh is a node that shares no strings with others, like one that was just decoded.
func fresh(name string) *corev1.Node {
	node := kept(name)
	node.Labels = map[string]string{strings.Clone("team"): strings.Clone("db"), strings.Clone(corev1.LabelHostname): strings.Clone(name)}
	return node
}

func TestInternerIsBounded(t *testing.T) {
	s := newInterner()
	for i := range 3 * maxInterned {
		text := fmt.Sprint(i)
		if got := s.intern(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	}
	if n := len(s.known); n > maxInterned {
		t.Errorf("%d strings are interned, want %d at most", n, maxInterned)
	}
}
