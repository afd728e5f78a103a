package intake_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// permitting is the Lease with the permit of drill d-1.
func permitting(t *testing.T, p intake.DrillPermit) *coordinationv1.Lease {
	t.Helper()
	value, err := intake.DrillValue(p)
	if err != nil {
		t.Fatal(err)
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: intake.DrillNamespace, Name: intake.DrillLease,
		Annotations: map[string]string{intake.DrillAnnotation("d-1"): value, intake.DrillAnnotation("d-0"): "{"},
	}}
}

// Anyone who can send to the queue can mark a message as a drill. It counts only if the cluster
// permits the drill, for this instance and now.
func TestDrillsNeedAPermit(t *testing.T) {
	permit := intake.DrillPermit{Instances: []string{instance}, Expires: now.Add(time.Minute)}
	ending, over, other := permit, permit, permit
	ending.EndInstance, over.Expires, other.Instances = true, now, []string{"i-0ffffffffffffffff"}
	for name, tc := range map[string]struct {
		drill  string
		permit *intake.DrillPermit
		want   intake.Outcome
		ends   bool
	}{
		"permitted":                       {"d-1", &permit, intake.Recorded, false},
		"permitted to end the instance":   {"d-1", &ending, intake.Recorded, true},
		"the permit has expired":          {"d-1", &over, intake.Unpermitted, false},
		"the permit is for others":        {"d-1", &other, intake.Unpermitted, false},
		"another drill":                   {"d-2", &permit, intake.Unpermitted, false},
		"a permit that cannot be decoded": {"d-0", &permit, intake.Unpermitted, false},
		"no id":                           {"", &permit, intake.Unpermitted, false},
		"there is no Lease":               {"d-1", nil, intake.Unpermitted, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(interceptor.Funcs{})
			if tc.permit != nil {
				c = cluster(interceptor.Funcs{}, permitting(t, *tc.permit))
			}
			n := spot("n", func(n *notice.Notice) { n.Drill, n.DrillID, n.EndInstance = true, tc.drill, false })
			got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), n)
			if err != nil || got != tc.want || !got.Final() {
				t.Fatalf("outcome %s, error %v, want %s", got, err, tc.want)
			}
			if got == intake.Recorded && read(t, c).Spec.Notices[0].EndInstance != tc.ends {
				t.Errorf("ends the instance: %v", !tc.ends)
			}
		})
	}
}

// A notice of 2099 would drain a node until then.
func TestNoticesOfTheFutureAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		at     time.Time
		source string
		want   intake.Outcome
	}{
		"now":                          {now, notice.SourceQueue, intake.Recorded},
		"by a clock that is ahead":     {now.Add(4 * time.Minute), notice.SourceQueue, intake.Recorded},
		"in the future":                {now.Add(6 * time.Minute), notice.SourceQueue, intake.Implausible},
		"in 2099":                      {time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), notice.SourceEC2, intake.Implausible},
		"an agent whose clock is slow": {now.Add(time.Hour), notice.SourceIMDS, intake.Recorded},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(interceptor.Funcs{})
			n := spot("n", issued(tc.at), func(n *notice.Notice) { n.Source = tc.source })
			got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), n)
			if err != nil || got != tc.want || !got.Final() {
				t.Fatalf("outcome %s, error %v, want %s", got, err, tc.want)
			}
			if got == intake.Recorded && tc.source == notice.SourceIMDS && read(t, c).Spec.Notices[0].Time.After(now) {
				t.Error("the notice is of the future")
			}
		})
	}
}

// Several nodes state the instance: its notice is recorded for none of them.
func TestNoticesOfAnInstanceWithSeveralNodesAreRecorded(t *testing.T) {
	c := cluster(interceptor.Funcs{})
	got, err := intake.NewRecorder(c, contested{}, options()).Record(t.Context(), spot("n"))
	if err != nil || got != intake.Recorded {
		t.Fatalf("outcome %s, error %v", got, err)
	}
	if in := read(t, c); in.Spec.NodeName != "" || in.Spec.NodeUID != "" {
		t.Errorf("recorded for node %q", in.Spec.NodeName)
	}
}

// contested is a NodeIndex in which two nodes state each instance.
type contested struct{}

func (contested) NodeByInstance(_ context.Context, id string) (*corev1.Node, error) {
	return nil, &corroborate.ConflictError{InstanceID: id, Nodes: []string{"a", "b"}}
}
