package intake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const instance = "i-0a1b2c3d4e5f60718"

var now = time.Date(2026, 5, 11, 8, 14, 5, 0, time.UTC)

var resource = schema.GroupResource{Group: "lifeboat.dev", Resource: "interruptions"}

// nodes is a NodeIndex.
type nodes map[string]*corev1.Node

func (n nodes) NodeByInstance(_ context.Context, id string) (*corev1.Node, error) {
	return n[id], nil
}

func oneNode() nodes {
	return nodes{instance: {ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-1-7", UID: "node-uid"}}}
}

// nodeOf is oneNode, registered at a time.
func nodeOf(created time.Time) nodes {
	all := oneNode()
	all[instance].CreationTimestamp = metav1.NewTime(created)
	return all
}

// spot is a notice issued 3 seconds ago, with changes.
func spot(id string, changes ...func(*notice.Notice)) notice.Notice {
	issued := now.Add(-3 * time.Second)
	n := notice.Notice{
		Notice: v1beta1.Notice{
			ID: id, Kind: notice.KindSpotInterruption, Source: "test", Time: metav1.NewTime(issued),
			Deadline: notice.At(issued.Add(2*time.Minute), v1beta1.DeadlineHard), InstanceAction: "terminate",
		},
		InstanceID: instance, Account: "210987654321", Region: "eu-west-1",
	}
	for _, change := range changes {
		change(&n)
	}
	return n
}

// rebalance is a rebalance recommendation issued at a time.
func rebalance(at time.Time, changes ...func(*notice.Notice)) notice.Notice {
	return spot("r", append([]func(*notice.Notice){func(n *notice.Notice) {
		n.Kind, n.Deadline, n.InstanceAction, n.Time = notice.KindRebalanceRecommendation, nil, "", metav1.NewTime(at)
	}}, changes...)...)
}

func issued(at time.Time) func(*notice.Notice) {
	return func(n *notice.Notice) {
		n.Time = metav1.NewTime(at)
		n.Deadline = notice.At(at.Add(2*time.Minute), v1beta1.DeadlineHard)
	}
}

func state(word string) func(*notice.Notice) {
	return func(n *notice.Notice) {
		n.Kind, n.InstanceState, n.InstanceAction = notice.KindInstanceStateChange, word, ""
		n.Deadline = notice.At(n.Time.Time, v1beta1.DeadlineHard)
	}
}

// recorded is the record in the fake API server.
func recorded(notices ...v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instance},
		Spec: v1beta1.InterruptionSpec{InstanceID: instance, NodeName: "ip-10-0-1-7", NodeUID: "node-uid",
			Notices: notices},
	}
}

func cluster(funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	scheme := runtime.NewScheme()
	_ = v1beta1.AddToScheme(scheme) // only adds known types
	_ = clientgoscheme.AddToScheme(scheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.Interruption{}).WithInterceptorFuncs(funcs).Build()
}

func options() intake.Options {
	return intake.Options{Account: "210987654321", Region: "eu-west-1", Clock: func() time.Time { return now }}
}

func ids(t *testing.T, c client.Client) []string {
	t.Helper()
	var record v1beta1.Interruption
	err := c.Get(t.Context(), client.ObjectKey{Name: instance}, &record)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range record.Spec.Notices {
		got = append(got, n.ID)
	}
	return got
}

func TestRecordOutcomes(t *testing.T) {
	old := spot("old").Notice
	tests := []struct {
		name    string
		objects []client.Object
		nodes   nodes
		notice  notice.Notice
		want    intake.Outcome
		wantIDs []string
	}{
		{"the first notice makes the record", nil, oneNode(), spot("a"), intake.Recorded, []string{"a"}},
		{"another notice joins", []client.Object{recorded(old)}, oneNode(), spot("a"), intake.Joined, []string{"old", "a"}},
		{"the same notice is a repeat", []client.Object{recorded(old)}, oneNode(), spot("old"), intake.Repeated, []string{"old"}},
		{"a notice joins though the node is gone", []client.Object{recorded(old)}, nil, spot("a"), intake.Joined, []string{"old", "a"}},
		{"a repeat needs no node", []client.Object{recorded(old)}, nil, spot("old"), intake.Repeated, []string{"old"}},
		{"a state joins though the node is gone", []client.Object{recorded(old)}, nil, spot("a", state("terminated")), intake.Joined, []string{"old", "a"}},
		{"an instance without a node is not known yet", nil, nil, spot("a"), intake.NotYetKnown, nil},
		{"an instance that stops without a node is not known yet", nil, nil, spot("a", state("stopping")), intake.NotYetKnown, nil},
		{"an instance that went without a node is foreign", nil, nil, spot("a", state("terminated")), intake.Foreign, nil},
		{"a state of the time before its node is stale", nil, nodeOf(now.Add(-time.Second)), spot("a", state("stopping")), intake.Stale, nil},
		{"nor does it join the record of an earlier life", []client.Object{recorded(old)}, nodeOf(now), spot("a", state("stopped")), intake.Stale, []string{"old"}},
		{"a state of the second in which it registered counts", nil, nodeOf(now.Add(-3 * time.Second)), spot("a", state("stopping")), intake.Recorded, []string{"a"}},
		{"a warning of the time before its node counts", nil, nodeOf(now), spot("a"), intake.Recorded, []string{"a"}},
		{"another account is foreign", nil, oneNode(), spot("a", func(n *notice.Notice) { n.Account = "999999999999" }), intake.Foreign, nil},
		{"another region is foreign", nil, oneNode(), spot("a", func(n *notice.Notice) { n.Region = "us-east-1" }), intake.Foreign, nil},
		{"a foreign notice does not join", []client.Object{recorded(old)}, oneNode(), spot("a", func(n *notice.Notice) { n.Account = "999999999999" }), intake.Foreign, []string{"old"}},
		{"no account is not another account", nil, oneNode(), spot("a", func(n *notice.Notice) { n.Account, n.Region = "", "" }), intake.Recorded, []string{"a"}},
		{"ten minutes after the deadline is not stale", nil, oneNode(), spot("a", issued(now.Add(-12*time.Minute))), intake.Recorded, []string{"a"}},
		{"more than ten minutes after it is", nil, oneNode(), spot("a", issued(now.Add(-12*time.Minute-time.Second))), intake.Stale, nil},
		{"a stale notice does not join", []client.Object{recorded(old)}, oneNode(), spot("a", issued(now.Add(-time.Hour))), intake.Stale, []string{"old"}},
		{"a rebalance recommendation of an hour ago is not stale", nil, oneNode(), rebalance(now.Add(-time.Hour)), intake.Recorded, []string{"r"}},
		{"an older one is", nil, oneNode(), rebalance(now.Add(-time.Hour - time.Second)), intake.Stale, nil},
		{"an older one does not join", []client.Object{recorded(old)}, oneNode(), rebalance(now.Add(-26 * time.Hour)), intake.Stale, []string{"old"}},
		{"one without a time is not", nil, oneNode(), rebalance(time.Time{}), intake.Recorded, []string{"r"}},
		{"a withdrawn one is not", []client.Object{recorded(old)}, oneNode(), rebalance(now.Add(-26*time.Hour), func(n *notice.Notice) { n.Withdrawn = true }), intake.Joined, []string{"old", "r"}},
		{"of other kinds nothing without a deadline is stale", nil, oneNode(), spot("a", issued(now.Add(-time.Hour)), func(n *notice.Notice) { n.Deadline = nil }), intake.Recorded, []string{"a"}},
		{"with a soft deadline nothing is stale", nil, oneNode(), spot("a", issued(now.Add(-time.Hour)), func(n *notice.Notice) { n.Deadline.Type = v1beta1.DeadlineSoft }), intake.Recorded, []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := cluster(interceptor.Funcs{}, test.objects...)
			got, err := intake.NewRecorder(c, test.nodes, options()).Record(t.Context(), test.notice)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if diff := cmp.Diff(test.wantIDs, ids(t, c)); diff != "" {
				t.Errorf("notices on record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordWritesAllFields(t *testing.T) {
	c := cluster(interceptor.Funcs{})
	n := spot("a", func(n *notice.Notice) { n.Description = "\x1b" + strings.Repeat("ä", 2000) })
	if _, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	want := recorded(n.Notice)
	want.Spec.Notices[0].ReceivedTime = metav1.NewMicroTime(now)
	want.Spec.Notices[0].Description = strings.Repeat("ä", 1023) + "…"
	var got v1beta1.Interruption
	if err := c.Get(t.Context(), client.ObjectKey{Name: instance}, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got, cmpopts.IgnoreFields(v1beta1.Interruption{}, "TypeMeta", "ResourceVersion")); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestJoiningKeepsStatusAndNode(t *testing.T) {
	record := recorded(spot("old").Notice)
	record.Status = v1beta1.InterruptionStatus{Phase: v1beta1.PhaseCompleted, NodeName: "ip-10-0-1-7"}
	c := cluster(interceptor.Funcs{}, record)
	if got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), spot("new")); got != intake.Joined {
		t.Fatalf("got %q, %v, want a finished record to be joined", got, err)
	}
	var got v1beta1.Interruption
	if err := c.Get(t.Context(), client.ObjectKey{Name: instance}, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.Status, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got.Spec.NodeName != "ip-10-0-1-7" || !got.Spec.Notices[1].ReceivedTime.Equal(&metav1.MicroTime{Time: now}) {
		t.Errorf("spec = %+v", got.Spec)
	}
}

func TestRecordSizeIsBounded(t *testing.T) {
	c := cluster(interceptor.Funcs{})
	recorder := intake.NewRecorder(c, oneNode(), options())
	for i := range notice.MaxPerInstance + 3 {
		if _, err := recorder.Record(t.Context(), spot(fmt.Sprintf("n-%02d", i))); err != nil {
			t.Fatal(err)
		}
	}
	got := ids(t, c)
	if len(got) != notice.MaxPerInstance-notice.MaxFromAgent || got[len(got)-1] != "n-34" {
		t.Errorf("%d notices on record, the last %s", len(got), got[len(got)-1])
	}
}

func TestErrorsAreNotOutcomes(t *testing.T) {
	broken := errors.New("connection refused")
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "lifeboat.dev", Kind: "Interruption"}, instance, nil)
	conflict := apierrors.NewConflict(resource, instance, errors.New("always"))
	get := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		}}
	}
	create := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err }}
	}
	patch := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		}}
	}
	tests := []struct {
		name    string
		funcs   interceptor.Funcs
		objects []client.Object
		want    error
		refused bool
	}{
		{"reading", get(broken), nil, broken, false},
		{"creating", create(broken), nil, broken, false},
		{"creating what is refused", create(invalid), nil, invalid, true},
		{"patching", patch(broken), []client.Object{recorded(spot("old").Notice)}, broken, false},
		{"patching what is refused", patch(invalid), []client.Object{recorded(spot("old").Notice)}, invalid, true},
		{"patching against others without end", patch(conflict), []client.Object{recorded(spot("old").Notice)}, conflict, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			recorder := intake.NewRecorder(cluster(test.funcs, test.objects...), oneNode(), options())
			outcome, err := recorder.Record(t.Context(), spot("a"))
			if outcome != "" || !errors.Is(err, test.want) || errors.Is(err, intake.ErrRefused) != test.refused {
				t.Errorf("got %q, %v", outcome, err)
			}
			if !strings.HasPrefix(fmt.Sprint(err), "recording SpotInterruption of "+instance+": ") {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestNodeIndexErrorIsReturned(t *testing.T) {
	recorder := intake.NewRecorder(cluster(interceptor.Funcs{}), brokenIndex{}, options())
	if outcome, err := recorder.Record(t.Context(), spot("a")); outcome != "" || !errors.Is(err, errIndex) {
		t.Errorf("got %q, %v", outcome, err)
	}
}

var errIndex = errors.New("cache is not synced")

type brokenIndex struct{}

func (brokenIndex) NodeByInstance(context.Context, string) (*corev1.Node, error) {
	return nil, errIndex
}
