package probe

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

const (
	account = "210987654321"
	region  = "eu-west-1"
)

// world is an emulated account with Lifeboat's wiring, and a replica that reads the
// queue.
type world struct {
	events *eventbridge.Client
	kube   client.WithWatch
	want   awssetup.Wiring
	// metrics are the replica's.
	metrics *prometheus.Registry
}

func newWorld(t *testing.T, funcs interceptor.Funcs) *world {
	t.Helper()
	_, endpoint := emulatortest.Serve(t, emulator.Options{Account: account, Region: region})
	cfg := aws.Config{
		Region: region, BaseEndpoint: &endpoint, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: awshttp.StaticCredentials("AKIATEST", "secret"),
	}
	queues := awssqs.NewFromConfig(cfg)
	w := &world{events: eventbridge.NewFromConfig(cfg), want: awssetup.Desired("prod", account, region), metrics: prometheus.NewRegistry()}
	if _, err := awssetup.Apply(t.Context(), awssetup.Clients{SQS: queues, Events: w.events}, w.want); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w.kube = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).Build()
	queue, err := queues.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: &w.want.Queue.Name})
	if err != nil {
		t.Fatal(err)
	}
	m, err := intake.NewMetrics(w.metrics)
	if err != nil {
		t.Fatal(err)
	}
	recorder := intake.NewRecorder(w.kube, noNodes{}, intake.Options{Account: account, Region: region, Live: w.kube, Metrics: m, Clock: time.Now})
	source, err := sqs.New(*queue.QueueUrl, sqs.NewClient(cfg), recorder, sqs.Options{Receivers: 1, Metrics: m})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) }) // always returns nil
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

type noNodes struct{}

func (noNodes) NodeByInstance(context.Context, string) (*corev1.Node, error) { return nil, nil }

func (w *world) prober(patience time.Duration) *Prober {
	return New(Options{Events: w.events, Kube: w.kube, Cluster: "prod", Timeout: patience})
}

func verdicts(results []Result) map[string]Verdict {
	all := map[string]Verdict{}
	for _, r := range results {
		all[r.Role] = r.Verdict
	}
	return all
}

func TestEveryRuleAnswers(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	results := w.prober(20*time.Second).Run(t.Context(), w.want.Rules)
	if len(results) != len(w.want.Rules) || len(results) < 8 {
		t.Fatalf("%d results for %d rules", len(results), len(w.want.Rules))
	}
	for i, r := range results {
		if r.Verdict != Answered || r.Seconds <= 0 || r.Rule != w.want.Rules[i].Name || r.Problem != "" {
			t.Errorf("%+v", r)
		}
	}
	// The mark contains the time of sending, which the replica needs to measure the
	// latency. It measures after it has reported, so the last measurement may be
	// late.
	for until := time.Now().Add(time.Minute); measured(t, w.metrics, "lifeboat_probe_seconds") < uint64(len(results)) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if n := measured(t, w.metrics, "lifeboat_probe_seconds"); n != uint64(len(results)) {
		t.Errorf("%d of %d probes measured", n, len(results))
	}
}

// measured returns the number of probes that a histogram has.
func measured(t *testing.T, metrics *prometheus.Registry, histogram string) (n uint64) {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == histogram {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

func TestProbesOfBrokenRulesAreUnanswered(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	ctx := t.Context()
	disabled, misspelt := awssetup.RuleName("prod", awssetup.RoleRebalance), awssetup.RuleName("prod", awssetup.RoleSpotInterruption)
	if _, err := w.events.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: &disabled}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.events.PutRule(ctx, &eventbridge.PutRuleInput{
		Name: &misspelt, EventPattern: aws.String(`{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Interruption Warning"]}`),
	}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	results := w.prober(2*time.Second).Run(ctx, w.want.Rules)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	want := map[string]Verdict{}
	for _, rule := range w.want.Rules {
		want[rule.Role] = Answered
	}
	want[awssetup.RoleRebalance], want[awssetup.RoleSpotInterruption] = Unanswered, Unanswered
	if diff := cmp.Diff(want, verdicts(results)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := results[0].Problem; got != "no report arrived within 2s" {
		t.Errorf("problem %q", got)
	}
}

// refusing refuses entries of one detail-type, or all entries.
type refusing struct {
	EventsAPI
	err error
}

func (r refusing) PutEvents(ctx context.Context, in *eventbridge.PutEventsInput, o ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	if r.err != nil {
		return nil, r.err
	}
	out, err := r.EventsAPI.PutEvents(ctx, in, o...)
	if err == nil {
		out.FailedEntryCount = 1
		out.Entries[0] = types.PutEventsResultEntry{ErrorCode: aws.String("InternalFailure"), ErrorMessage: aws.String("try again")}
	}
	return out, err
}

func TestRefusedProbesSayNothingAboutTheRule(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	p := New(Options{Events: refusing{EventsAPI: w.events}, Kube: w.kube, Cluster: "prod", Timeout: 20 * time.Second})
	results := p.Run(t.Context(), w.want.Rules)
	if r := results[0]; r.Verdict != Refused || r.Problem != "EventBridge refused the probe: InternalFailure: try again" {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.Verdict != Answered {
		t.Errorf("%+v", r)
	}
	p = New(Options{Events: refusing{err: errors.New("access denied")}, Kube: w.kube, Timeout: 20 * time.Second})
	for _, r := range p.Run(t.Context(), w.want.Rules) {
		if r.Verdict != Refused || !strings.Contains(r.Problem, "access denied") {
			t.Errorf("%+v", r)
		}
	}
	unknown := p.Run(t.Context(), []awssetup.Rule{{Name: "x", Role: "xyzzy"}})[0]
	if unknown.Verdict != Refused || !strings.Contains(unknown.Problem, "no probe for the role") {
		t.Errorf("%+v", unknown)
	}
}

// A probe that was not announced may come from any sender.
func TestUnannouncedProbeIsNotSent(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("leases is forbidden")
	}})
	p := New(Options{Events: refusing{err: errors.New("sent despite the error")}, Kube: w.kube})
	for _, r := range p.Run(t.Context(), w.want.Rules) {
		if r.Verdict != Unheard || !strings.Contains(r.Problem, "writing the Lease lifeboat-system/lifeboat-probe: leases is forbidden") {
			t.Errorf("%+v", r)
		}
	}
}

func TestAnnouncementEndsWithRun(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	for range 2 {
		w.prober(20*time.Second).Run(t.Context(), w.want.Rules[:2])
	}
	var lease coordinationv1.Lease
	if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: intake.ProbeNamespace, Name: intake.ProbeLease}, &lease); err != nil {
		t.Fatal(err)
	}
	if len(lease.Annotations) != 2 {
		t.Errorf("annotations %v, want the two answers", lease.Annotations)
	}
}

func TestNoProbeIsSentIfReportsCannotBeRead(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return nil, errors.New("leases is forbidden")
	}})
	p := New(Options{Events: refusing{err: errors.New("sent without a watch")}, Kube: w.kube})
	for _, r := range p.Run(t.Context(), w.want.Rules) {
		if r.Verdict != Unheard || !strings.Contains(r.Problem, "leases is forbidden") {
			t.Errorf("%+v", r)
		}
	}
}

// A closed watch is restarted, and starts with the current Lease.
func TestClosedWatchIsRestarted(t *testing.T) {
	var sent []types.PutEventsRequestEntry
	watches := 0
	scheme := clientgoscheme.Scheme
	kube := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			o := (&client.ListOptions{}).ApplyOptions(opts)
			if o.Namespace != intake.ProbeNamespace || o.FieldSelector.String() != "metadata.name="+intake.ProbeLease {
				t.Errorf("watches %s of %s", o.FieldSelector, o.Namespace)
			}
			watches++
			if watches == 2 {
				return nil, errors.New("connection refused")
			}
			f := watch.NewFakeWithChanSize(1, false)
			if watches == 3 {
				var detail map[string]awssetup.ProbeMark
				_ = json.Unmarshal([]byte(*sent[0].Detail), &detail) // checked below, by its effect
				f.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
					intake.ProbeAnnotation(awssetup.RoleRebalance): intake.ProbeValue(detail[awssetup.ProbeField].ID, time.Now()),
				}}})
			} else {
				f.Stop()
			}
			return f, nil
		},
	}).Build()
	p := New(Options{Events: recording{&sent}, Kube: kube, Cluster: "prod"})
	rebalance := awssetup.Desired("prod", account, region).Rules[1]
	got := p.Run(t.Context(), []awssetup.Rule{rebalance})[0]
	if got.Verdict != Answered || watches != 3 {
		t.Errorf("%d watches; %+v", watches, got)
	}
	if *sent[0].Source != "lifeboat.dev" {
		t.Errorf("sent as %s", *sent[0].Source)
	}
}

type recording struct {
	sent *[]types.PutEventsRequestEntry
}

func (r recording) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	*r.sent = append(*r.sent, in.Entries...)
	return &eventbridge.PutEventsOutput{Entries: make([]types.PutEventsResultEntry, len(in.Entries))}, nil
}

func TestCanary(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	disabled := awssetup.RuleName("prod", awssetup.RoleHealth)
	if _, err := w.events.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: &disabled}); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	c, err := NewCanary(w.prober(3*time.Second), w.want.Rules, time.Hour, registry)
	if err != nil {
		t.Fatal(err)
	}
	if !c.NeedLeaderElection() {
		t.Error("it runs on every replica")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	for deadline := time.Now().Add(time.Minute); testutil.ToFloat64(c.failed.WithLabelValues(awssetup.RoleHealth)) < 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the canary did not count the disabled rule")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, rule := range w.want.Rules {
		want := 0.0
		if rule.Role == awssetup.RoleHealth {
			want = 1
		}
		if got := testutil.ToFloat64(c.failed.WithLabelValues(rule.Role)); got != want {
			t.Errorf("%s failed %v times", rule.Role, got)
		}
	}
	if n := testutil.CollectAndCount(c.seconds); n != len(w.want.Rules) {
		t.Errorf("%d of %d rules have a histogram", n, len(w.want.Rules))
	}
	if n := measured(t, registry, "lifeboat_canary_seconds"); n != uint64(len(w.want.Rules)-1) {
		t.Errorf("%d rules were measured", n)
	}
}

// A canary that is stopped during a probe counts no failure.
func TestStoppedCanaryCountsNoFailure(t *testing.T) {
	var sent []types.PutEventsRequestEntry
	kube := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	c, err := NewCanary(New(Options{Events: recording{&sent}, Kube: kube}), awssetup.Desired("prod", account, region).Rules, time.Hour, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Start(ctx); err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(c.failed.WithLabelValues(awssetup.RoleHealth)); got != 0 {
		t.Errorf("failed %v times", got)
	}
}

func TestCanaryRefusesShortInterval(t *testing.T) {
	if _, err := NewCanary(New(Options{}), nil, time.Second, prometheus.NewRegistry()); err == nil {
		t.Error("a second is taken for an interval")
	}
}
