package nodelabel

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheHostsNameIsPutBack(t *testing.T) {
	shared := map[string]string{corev1.LabelHostname: AsNamed, "app": "web"}
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"as the node is named": {shared, "a"},
		"another":              {map[string]string{corev1.LabelHostname: "other"}, "other"},
		"without the label":    {map[string]string{"app": "web"}, ""},
		"without labels":       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: tc.labels}}
			if got := Of(node, corev1.LabelHostname); got != tc.want {
				t.Errorf("read %q, want %q", got, tc.want)
			}
			if got := Of(node, "app"); got != tc.labels["app"] {
				t.Errorf("another label reads %q", got)
			}
			_, was := tc.labels[corev1.LabelHostname]
			PutBack(node)
			if got, is := node.Labels[corev1.LabelHostname]; got != tc.want || is != was {
				t.Errorf("put back %q (%v), want %q (%v)", got, is, tc.want, was)
			}
		})
	}
	if shared[corev1.LabelHostname] != AsNamed {
		t.Error("labels that others share were changed")
	}
}
