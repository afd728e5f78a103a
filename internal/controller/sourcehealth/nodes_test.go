package sourcehealth

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestNodesWithoutProviderIDAreReportedAtStart(t *testing.T) {
	named := func(name, provider string) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: provider}}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    int
	}{
		"EC2 with provider ids":    {[]client.Object{named("ip-10-0-1-5.ec2.internal", "aws:///us-east-1a/i-0a1b2c3d4e5f60718")}, 0},
		"EC2 without one":          {[]client.Object{named("ip-10-0-1-5.ec2.internal", "")}, 1},
		"machines of other places": {[]client.Object{named("rack7", "")}, 0},
	} {
		recorder := events.NewFakeRecorder(100)
		c := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
		if ReportNodes(t.Context(), c, recorder); len(recorder.Events) != tc.want {
			t.Errorf("%s: %d Events, want %d", name, len(recorder.Events), tc.want)
		}
		if tc.want > 0 && !strings.Contains(<-recorder.Events, "NoProviderID the node runs on EC2") {
			t.Errorf("%s: another Event", name)
		}
	}
	var many []client.Object
	for i := range 50 {
		many = append(many, named(fmt.Sprintf("ip-10-0-1-%d.ec2.internal", i), ""))
	}
	recorder := events.NewFakeRecorder(100)
	if ReportNodes(t.Context(), fake.NewClientBuilder().WithObjects(many...).Build(), recorder); len(recorder.Events) != maxNodeEvents {
		t.Errorf("%d Events of 50 nodes, want %d", len(recorder.Events), maxNodeEvents)
	}
}
