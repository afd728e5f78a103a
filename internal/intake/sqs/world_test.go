package sqs_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

const (
	account  = "210987654321"
	region   = "eu-west-1"
	instance = "i-0a1b2c3d4e5f60718"
	other    = "i-0bbbbbbbbbbbbbbbb"
)

// world is an emulated account with a queue, and a cluster.
type world struct {
	t      testing.TB
	server *emulator.Server
	url    string // of the account
	aws    *awssqs.Client
	queue  string // URL
	kube   client.WithWatch
	nodes  *nodes
	calls  *calls

	registry *prometheus.Registry
	metrics  *intake.Metrics
	log      *lines
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, nodes: &nodes{}, calls: &calls{}, log: &lines{}, registry: prometheus.NewRegistry()}
	w.server, w.url = emulatortest.Serve(t, emulator.Options{Account: account, Region: region})
	w.aws = w.client(w.url)
	w.queue = w.create("lifeboat", nil)
	scheme := runtime.NewScheme()
	_ = v1beta1.AddToScheme(scheme) // only adds known types
	w.kube = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.Interruption{}).Build()
	w.nodes.add(instance)
	var err error
	if w.metrics, err = intake.NewMetrics(w.registry); err != nil {
		t.Fatal(err)
	}
	return w
}

// client is the client that the product makes.
func (w *world) client(url string) *awssqs.Client {
	return sqs.NewClient(aws.Config{
		Region: region, BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})
}

func (w *world) create(name string, attributes map[string]string) string {
	w.t.Helper()
	out, err := w.aws.CreateQueue(context.Background(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		w.t.Fatal(err)
	}
	return *out.QueueUrl
}

func (w *world) send(bodies ...string) {
	w.t.Helper()
	for _, body := range bodies {
		_, err := w.aws.SendMessage(context.Background(), &awssqs.SendMessageInput{QueueUrl: &w.queue, MessageBody: &body})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// waiting counts the messages of a queue, including those in flight.
func (w *world) waiting(queue string) int {
	w.t.Helper()
	out, err := w.aws.GetQueueAttributes(context.Background(), &awssqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		w.t.Fatal(err)
	}
	sum := 0
	for _, name := range []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	} {
		n, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			w.t.Fatalf("reading %s: %v", name, err)
		}
		sum += n
	}
	return sum
}

// start runs a replica until the test ends, or the returned function is called.
func (w *world) start(api sqs.API, o sqs.Options) (stop func()) {
	w.t.Helper()
	o.Metrics = w.metrics
	recorder := intake.NewRecorder(w.kube, w.nodes, intake.Options{Account: account, Region: region, Metrics: w.metrics})
	return w.run(api, recorder, o)
}

func (w *world) run(api sqs.API, recorder sqs.Recorder, o sqs.Options) (stop func()) {
	w.t.Helper()
	source, err := sqs.New(w.queue, countedAPI{api, w.calls}, recorder, o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), w.log.logger()))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// until waits for a condition.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited too long until %s; messages %v; log:\n%s", what, w.count("lifeboat_received_messages_total", "outcome"), w.log)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// untilOutcomes waits until the messages received add up to want.
func (w *world) untilOutcomes(want map[string]float64) {
	w.t.Helper()
	w.until(fmt.Sprintf("messages are %v", want), func() bool {
		return fmt.Sprint(w.count("lifeboat_received_messages_total", "outcome")) == fmt.Sprint(want)
	})
}

func (w *world) untilEmpty() {
	w.t.Helper()
	w.until("the queue is empty", func() bool { return w.waiting(w.queue) == 0 })
}

// count reads a metric, by the values of one label.
func (w *world) count(name, label string) map[string]float64 {
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					counts[l.GetValue()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return counts
}

// records are the ids of the recorded notices, by instance.
func (w *world) records() map[string][]string {
	w.t.Helper()
	var list v1beta1.InterruptionList
	if err := w.kube.List(context.Background(), &list); err != nil {
		w.t.Fatal(err)
	}
	records := map[string][]string{}
	for _, record := range list.Items {
		for _, n := range record.Spec.Notices {
			records[record.Name] = append(records[record.Name], n.ID)
		}
		slices.SortFunc(records[record.Name], cmp.Compare[string])
	}
	return records
}
