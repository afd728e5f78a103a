package intake_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// storage is a claim with a volume of the CSI driver, one with an in-tree volume, and their
// users.
func storage() []client.Object {
	claim := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Namespace: "shop", Name: name}
	}
	uses := func(name string) []corev1.Volume {
		return []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	}
	csi := &corev1.PersistentVolume{ObjectMeta: named("", "csi"), Spec: corev1.PersistentVolumeSpec{ClaimRef: claim("data")}}
	csi.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-1"}
	old := &corev1.PersistentVolume{ObjectMeta: named("", "old"), Spec: corev1.PersistentVolumeSpec{ClaimRef: claim("old")}}
	old.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://eu-west-1a/vol-2"}
	free := &corev1.PersistentVolume{ObjectMeta: named("", "free")}
	free.Spec.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: "vol-3"}
	return []client.Object{
		csi, old, free,
		&corev1.Pod{ObjectMeta: named("shop", "db-0"), Spec: corev1.PodSpec{Volumes: uses("data")}},
		&corev1.Pod{ObjectMeta: named("shop", "db-1"), Spec: corev1.PodSpec{Volumes: uses("other")}},
		&corev1.Pod{ObjectMeta: named("else", "db-0"), Spec: corev1.PodSpec{Volumes: uses("data")}},
	}
}

func TestReportsReachOwners(t *testing.T) {
	for name, tc := range map[string]struct {
		report  intake.Report
		outcome intake.Outcome
		about   []string
	}{
		"a volume of the CSI driver":   {intake.Report{Volume: "vol-1"}, intake.Recorded, []string{"shop PersistentVolumeClaim data", "shop Pod db-0"}},
		"a volume of the in-tree kind": {intake.Report{Volume: "vol-2"}, intake.Recorded, []string{"shop PersistentVolumeClaim old"}},
		"a volume without a claim":     {intake.Report{Volume: "vol-3"}, intake.Foreign, nil},
		"a volume of another cluster":  {intake.Report{Volume: "vol-4"}, intake.Foreign, nil},
		"the whole account":            {intake.Report{}, intake.Recorded, []string{"default Namespace kube-system"}},
		"another account":              {intake.Report{Account: "111111111111"}, intake.Foreign, nil},
		"another region":               {intake.Report{Region: "us-west-2"}, intake.Foreign, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(interceptor.Funcs{}, storage()...)
			recorder := intake.NewRecorder(c, oneNode(), options())
			tc.report.ID, tc.report.Message, tc.report.Time = "r-1", "AWS Health reports", now
			for i, want := range []intake.Outcome{tc.outcome, intake.Repeated} {
				if i > 0 && tc.outcome == intake.Foreign {
					want = intake.Foreign
				}
				if got, err := recorder.Report(t.Context(), tc.report); err != nil || got != want {
					t.Errorf("time %d: %s, %v; want %s", i+1, got, err, want)
				}
			}
			var events eventsv1.EventList
			if err := c.List(t.Context(), &events); err != nil {
				t.Fatal(err)
			}
			var about []string
			for _, e := range events.Items {
				about = append(about, e.Namespace+" "+e.Regarding.Kind+" "+e.Regarding.Name)
				if e.Note != "AWS Health reports" || e.Type != corev1.EventTypeWarning {
					t.Errorf("event %+v", e)
				}
			}
			slices.Sort(about)
			if !slices.Equal(about, tc.about) {
				t.Errorf("events about %v, want %v", about, tc.about)
			}
		})
	}
}

func TestFailedReportIsRetried(t *testing.T) {
	c := cluster(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("away")
	}})
	if outcome, err := intake.NewRecorder(c, oneNode(), options()).Report(t.Context(), intake.Report{ID: "r-1"}); err == nil {
		t.Errorf("outcome %s", outcome)
	}
}

func TestProbesAreAnswered(t *testing.T) {
	c := cluster(interceptor.Funcs{})
	recorder := intake.NewRecorder(c, oneNode(), options())
	for _, p := range []intake.Probe{{ID: "p-1", Rule: "health"}, {ID: "p-2", Rule: "rebalance"}, {ID: "p-3", Rule: "health"}} {
		if !p.Valid() {
			t.Fatalf("%+v is not valid", p)
		}
		if err := recorder.Answer(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	o := options()
	o.Cluster = "ours"
	if err := intake.NewRecorder(c, oneNode(), o).Answer(t.Context(), intake.Probe{ID: "p-4", Rule: "health", Cluster: "theirs"}); err != nil {
		t.Fatal(err)
	}
	var lease coordinationv1.Lease
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: intake.ProbeNamespace, Name: intake.ProbeLease}, &lease); err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]string{"health": intake.ProbeValue("p-3", now), "rebalance": intake.ProbeValue("p-2", now)} {
		if got := lease.Annotations[intake.ProbeAnnotation(rule)]; got != want {
			t.Errorf("rule %s: %q, want %q", rule, got, want)
		}
	}
	for _, bad := range []intake.Probe{{Rule: "health"}, {ID: "p"}, {ID: "p", Rule: "no such/rule"}, {ID: "a b", Rule: "health"}} {
		if bad.Valid() {
			t.Errorf("%+v is valid", bad)
		}
	}
}

func TestProbeForClusterAliasIsAnswered(t *testing.T) {
	for theirs, answered := range map[string]bool{"": true, "prod-example-com-7405b025": true, "prod.example.com": true, "prod": false} {
		c, o := cluster(interceptor.Funcs{}), options()
		o.Cluster, o.Alias = "prod-example-com-7405b025", func(name string) bool { return name == "prod.example.com" }
		if err := intake.NewRecorder(c, oneNode(), o).Answer(t.Context(), intake.Probe{ID: "p-1", Rule: "health", Cluster: theirs}); err != nil {
			t.Fatal(err)
		}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: intake.ProbeNamespace, Name: intake.ProbeLease}, &coordinationv1.Lease{})
		if answered != (err == nil) {
			t.Errorf("probe of %q: want an answer: %v (%v)", theirs, answered, err)
		}
	}
}

func TestWithdrawalForUnknownInstanceIsDropped(t *testing.T) {
	n := spot("a", func(n *notice.Notice) { n.Withdrawn = true })
	got, err := intake.NewRecorder(cluster(interceptor.Funcs{}), nodes{}, options()).Record(t.Context(), n)
	if err != nil || got != intake.Foreign {
		t.Errorf("outcome %s, %v", got, err)
	}
}

// The queue keeps no order, so the end of a change is recorded even if its beginning is unknown.
func TestClosingNoticeArrivesFirst(t *testing.T) {
	c := cluster(interceptor.Funcs{})
	recorder := intake.NewRecorder(c, oneNode(), options())
	news := func(id string, at time.Time, withdrawn bool) notice.Notice {
		return spot(id, issued(at), func(n *notice.Notice) { n.Subject, n.Withdrawn = "arn:event", withdrawn })
	}
	for _, step := range []struct {
		n    notice.Notice
		want intake.Outcome
	}{
		{news("closed", now, true), intake.Recorded},
		{news("open", now.Add(-time.Minute), false), intake.Repeated},
	} {
		if got, err := recorder.Record(t.Context(), step.n); err != nil || got != step.want {
			t.Errorf("%s: %s, %v; want %s", step.n.ID, got, err, step.want)
		}
	}
	if got := ids(t, c); !slices.Equal(got, []string{"closed"}) {
		t.Errorf("recorded %v", got)
	}
}
