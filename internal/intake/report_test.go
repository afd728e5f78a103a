package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		"a volume of the CSI driver":   {intake.Report{Volumes: []string{"vol-1"}}, intake.Recorded, []string{"shop PersistentVolumeClaim data", "shop Pod db-0"}},
		"a volume of the in-tree kind": {intake.Report{Volumes: []string{"vol-2"}}, intake.Recorded, []string{"shop PersistentVolumeClaim old"}},
		"two volumes":                  {intake.Report{Volumes: []string{"vol-2", "vol-1"}}, intake.Recorded, []string{"shop PersistentVolumeClaim data", "shop PersistentVolumeClaim old", "shop Pod db-0"}},
		"a volume without a claim":     {intake.Report{Volumes: []string{"vol-3"}}, intake.Foreign, nil},
		"a volume of another cluster":  {intake.Report{Volumes: []string{"vol-4"}}, intake.Foreign, nil},
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

// A message of AWS Health can name hundreds of volumes.
func TestReportListsVolumesOnce(t *testing.T) {
	lists := map[string]int{}
	c := cluster(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		lists[fmt.Sprintf("%T", list)]++
		return c.List(ctx, list, o...)
	}}, storage()...)
	report := intake.Report{ID: "r-1", Message: "AWS Health reports", Time: now}
	for i := range 500 {
		report.Volumes = append(report.Volumes, fmt.Sprintf("vol-%d", i))
	}
	if got, err := intake.NewRecorder(c, oneNode(), options()).Report(t.Context(), report); err != nil || got != intake.Recorded {
		t.Errorf("%s, %v", got, err)
	}
	if diff := cmp.Diff(map[string]int{"*v1.PersistentVolumeList": 1, "*v1.PodList": 1}, lists); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
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

// A released volume names the claim of a namespace that may be gone. The others get their Event.
func TestReportSkipsNamespacesThatAreGone(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, gone := range map[string]error{
		"deleted": apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), "terminating": terminating,
	} {
		var about []string
		c := cluster(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			e, ok := o.(*eventsv1.Event)
			if !ok || e.Regarding.Kind == "PersistentVolumeClaim" {
				return gone
			}
			about = append(about, e.Regarding.Kind)
			return nil
		}}, storage()...)
		report := intake.Report{ID: "r-1", Message: "AWS Health reports", Time: now, Volumes: []string{"vol-1"}}
		if got, err := intake.NewRecorder(c, oneNode(), options()).Report(t.Context(), report); err != nil || got != intake.Recorded || !slices.Equal(about, []string{"Pod"}) {
			t.Errorf("%s: %s, %v, events about %v", name, got, err, about)
		}
		report.Volumes = []string{"vol-2"} // no pod uses it
		if got, err := intake.NewRecorder(c, oneNode(), options()).Report(t.Context(), report); err != nil || got != intake.Foreign {
			t.Errorf("%s, without others: %s, %v", name, got, err)
		}
	}
}

// probeLease returns the Lease with announcements.
func probeLease(ids ...string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: named(intake.ProbeNamespace, intake.ProbeLease)}
	for _, id := range ids {
		intake.Announce(lease, id, now, now.Add(time.Minute))
	}
	return lease
}

// answers returns the answers in the Lease, by rule.
func answers(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(probeLease()), &lease); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for key, value := range lease.Annotations {
		if rule, ok := strings.CutPrefix(key, intake.ProbeAnnotation("")); ok {
			all[rule] = value
		}
	}
	return all
}

// Everybody who can put events on the bus can send probes.
func TestOnlyAnnouncedProbesOfKnownRulesAreAnsweredOnce(t *testing.T) {
	patches := 0
	c := cluster(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		patches++
		return c.Patch(ctx, o, p, opts...)
	}}, probeLease("p-1", "p-2"))
	o := options()
	o.Cluster, o.Rules = "ours", []string{"health", "rebalance", "capacity"}
	recorder := intake.NewRecorder(c, oneNode(), o)
	for _, p := range []intake.Probe{
		{ID: "p-1", Rule: "health"}, {ID: "p-2", Rule: "rebalance"}, {ID: "p-2", Rule: "health"},
		{ID: "p-2", Rule: "health"},                      // once more
		{ID: "p-3", Rule: "capacity"},                    // not announced
		{ID: "p-1", Rule: "no-rule"},                     // of an unknown rule
		{ID: "p-1", Rule: "capacity", Cluster: "theirs"}, // of another cluster
		{Rule: "health"}, {ID: "p-1", Rule: "no such/rule"}, {ID: "a b", Rule: "health"},
	} {
		if err := recorder.Answer(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"health": intake.ProbeValue("p-2", now), "rebalance": intake.ProbeValue("p-2", now)}
	if diff := cmp.Diff(want, answers(t, c)); diff != "" || patches != 3 {
		t.Errorf("%d patches, want 3; answers (-want +got):\n%s", patches, diff)
	}
}

// Probes that were not announced cost one read of the Lease together.
func TestForgedProbesShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		c := cluster(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		}})
		recorder := intake.NewRecorder(c, oneNode(), options())
		began := time.Now()
		var group sync.WaitGroup
		for i := range 3000 {
			group.Go(func() {
				if err := recorder.Answer(t.Context(), intake.Probe{ID: "p", Rule: fmt.Sprintf("rule-%d", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if took := time.Since(began); reads > 2 || took > 250*time.Millisecond {
			t.Errorf("%d reads in %s for 3000 probes", reads, took)
		}
	})
}

func TestAnnouncementsExpire(t *testing.T) {
	lease := probeLease("p-1")
	intake.Announce(lease, "p-2", now.Add(2*time.Minute), now.Add(3*time.Minute))
	intake.Announce(lease, "p-3", now.Add(2*time.Minute), now.Add(3*time.Minute))
	intake.Retract(lease, "p-3")
	want := map[string]string{"lifeboat.dev/announced-p-2": now.Add(3 * time.Minute).UTC().Format(time.RFC3339)}
	if diff := cmp.Diff(want, lease.Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProbeForClusterAliasIsAnswered(t *testing.T) {
	for theirs, answered := range map[string]bool{"": true, "prod-example-com-7405b025": true, "prod.example.com": true, "prod": false} {
		c, o := cluster(interceptor.Funcs{}, probeLease("p-1")), options()
		o.Cluster, o.Alias = "prod-example-com-7405b025", func(name string) bool { return name == "prod.example.com" }
		if err := intake.NewRecorder(c, oneNode(), o).Answer(t.Context(), intake.Probe{ID: "p-1", Rule: "health", Cluster: theirs}); err != nil {
			t.Fatal(err)
		}
		if got := answers(t, c); answered != (got["health"] != "") {
			t.Errorf("probe of %q: want an answer: %v (%v)", theirs, answered, got)
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
