package nodeindex

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/nodelabel"
)

// kept is a node with all that is read of one.
func kept(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "uid", ResourceVersion: "7", Generation: 2, CreationTimestamp: metav1.Unix(1, 0), DeletionTimestamp: &metav1.Time{Time: time.Unix(2, 0)},
			Labels:      map[string]string{"team": "db", corev1.LabelHostname: name},
			Annotations: map[string]string{"lifeboat.dev/before": "{}"},
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
	if diff := cmp.Diff(kept("a"), restored(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// restored puts back what is not in the labels of a node in the cache.
func restored(object any) *corev1.Node {
	node, _ := object.(*corev1.Node)
	nodelabel.PutBack(node)
	return node
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
		if diff := cmp.Diff(want, restored(twice)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestNodesShareTheTextOfTheirLabels(t *testing.T) {
	s := newSlimmer()
	at := func(node *corev1.Node) (key, value *byte) {
		labels := s.slim(node).Labels
		for k := range maps.Keys(labels) {
			if k == "team" {
				key = unsafe.StringData(k)
			}
		}
		return key, unsafe.StringData(labels["team"])
	}
	other := fresh("two")
	other.Labels["only"] = "here"
	key1, value1 := at(fresh("one"))
	key2, value2 := at(other)
	if key1 != key2 || value1 != value2 {
		t.Error("two nodes hold the same text twice")
	}
	if _, remembered := s.shared["one"]; remembered {
		t.Error("the names of nodes are remembered")
	}
}

func TestNodesShareLabelsThatAreTheSame(t *testing.T) {
	s := newSlimmer()
	elsewhere, other := fresh("three"), fresh("four")
	elsewhere.Labels[corev1.LabelHostname] = "host"
	other.Labels["team"] = "web"
	address := func(node *corev1.Node) unsafe.Pointer { return reflect.ValueOf(node.Labels).UnsafePointer() }
	one, two, three, four := s.slim(fresh("one")), s.slim(fresh("two")), s.slim(elsewhere), s.slim(other)
	if address(one) != address(two) {
		t.Error("two nodes hold the same labels twice")
	}
	if address(one) == address(three) || address(one) == address(four) {
		t.Error("two nodes share labels that differ")
	}
	for want, node := range map[string]*corev1.Node{"one": one, "two": two, "host": three, "four": four} {
		if got := nodelabel.Of(node, corev1.LabelHostname); got != want {
			t.Errorf("host %q, want %q", got, want)
		}
		nodelabel.PutBack(node)
		if got := node.Labels[corev1.LabelHostname]; got != want || got != nodelabel.Of(node, corev1.LabelHostname) {
			t.Errorf("put back host %q, want %q", got, want)
		}
	}
	if four.Labels["team"] != "web" || nodelabel.Of(four, "team") != "web" || nodelabel.Of(four, "none") != "" {
		t.Errorf("labels %v", four.Labels)
	}
	for i := range 3 * maxSets {
		node := fresh("node")
		node.Labels["number"] = fmt.Sprint(i)
		s.slim(node)
	}
	if n := len(s.sets); n > maxSets {
		t.Errorf("%d sets of labels are remembered", n)
	}
}

// fresh is a node whose strings are its own, as one has that was decoded.
func fresh(name string) *corev1.Node {
	node := kept(name)
	node.Labels = map[string]string{strings.Clone("team"): strings.Clone("db"), strings.Clone(corev1.LabelHostname): strings.Clone(name)}
	return node
}

func TestSharedTextIsBounded(t *testing.T) {
	s := newSlimmer()
	for i := range 3 * maxShared {
		text := fmt.Sprint(i)
		if got := s.share(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	}
	if n := len(s.shared); n > maxShared {
		t.Errorf("%d strings are remembered", n)
	}
}
