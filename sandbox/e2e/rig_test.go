package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/unkind"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// lifeboatd is the program under test, built once.
var lifeboatd string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard()) // lifeboatd writes its own log
	dir, err := os.MkdirTemp("", "lifeboat-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	lifeboatd, err = program.Lifeboatd(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// rig is a sandbox with helpers for tests.
type rig struct {
	*sandbox.Sandbox
	t      *testing.T
	client client.Client
	sqs    *awssqs.Client
	audit  string        // path of the API server's audit log
	starts time.Duration // how long lifeboatd took to become ready
	slow   float64       // factor for time limits on this machine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigWith(t, sandbox.Options{})
}

// newUnkindRig is a rig whose emulated AWS answers as badly as AWS documents.
func newUnkindRig(t *testing.T, o sandbox.Options) *rig {
	t.Helper()
	o.Unkind = unkind.Seed(t)
	return newRigWith(t, o)
}

// newRigWith is a rig on a sandbox with the given options. The variable LIFEBOAT_UNKIND makes its emulated
// AWS unkind.
func newRigWith(t *testing.T, o sandbox.Options) *rig {
	t.Helper()
	o.Name, o.Dir, o.Lifeboatd = "e2e", filepath.Join(t.TempDir(), "s"), lifeboatd
	if o.Unkind == 0 {
		o.Unkind = unkind.Asked(t)
	}
	if o.BootDelay == 0 {
		o.BootDelay = 200 * time.Millisecond
	}
	r := &rig{t: t}
	if o.APIServerArgs == nil {
		o.APIServerArgs, r.audit = auditArgs(t, removalsPolicy)
	}
	var up time.Duration
	o.Progress = func(s sandbox.Step) {
		if s.Done && s.Name == "lifeboatd" {
			r.starts = s.Took
		}
		if s.Done && s.Name != "programs" { // they may need a build first
			up += s.Took
		}
	}
	s, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Sandbox, r.slow = s, timelimit.Factor(up)
	t.Logf("the sandbox came up in %s, lifeboatd in %s: time limits are multiplied by %.1f",
		up.Round(time.Millisecond), r.starts.Round(time.Millisecond), r.slow)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(s.LifeboatLog())
			t.Logf("lifeboatd's log ends:\n%s", tail(log, 6000))
		}
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r.client, err = client.New(s.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	r.sqs = awssqs.NewFromConfig(s.AWSConfig())
	t.Cleanup(func() {
		if t.Failed() {
			r.logState()
		}
	})
	return r
}

// logState logs the state of the cluster for a failed test.
func (r *rig) logState() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var records v1beta1.InterruptionList
	if err := r.client.List(ctx, &records); err != nil {
		r.t.Logf("listing interruptions: %v", err)
	}
	for _, in := range records.Items {
		r.t.Logf("interruption %s of node %s: %s, deadline %v, pods %+v", in.Name, in.Spec.NodeName, in.Status.Phase, in.Status.Deadline, drainOf(&in).Pods)
		for _, e := range in.Status.Timeline {
			r.t.Logf("  %s %-20s %s", e.Time.Format("15:04:05.000"), e.Reason, e.Message)
		}
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace("default")); err != nil {
		r.t.Logf("listing pods: %v", err)
	}
	for _, p := range pods.Items {
		r.t.Logf("pod %s on %q is %s, deleted %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp)
	}
}

func tail(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// until waits for a condition, also while the API server is down. The limit applies to a quiet
// machine.
func (r *rig) until(what string, within time.Duration, holds func(ctx context.Context) (bool, error)) {
	r.t.Helper()
	timelimit.Until(r.t, what, within, r.slow, holds)
}

// launch starts spot instances and returns them with their nodes Ready.
func (r *rig) launch(n int) []ec2.Instance {
	r.t.Helper()
	return r.launchAll(ec2.LaunchInput{
		ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: n, Max: n, Spot: &ec2.SpotOptions{},
	})
}

// launchAll starts instances and returns them with their nodes Ready.
func (r *rig) launchAll(input ec2.LaunchInput) []ec2.Instance {
	r.t.Helper()
	instances, err := r.EC2().Launch(input)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, in := range instances {
		r.until("node "+in.PrivateDNSName+" to be Ready", time.Minute, func(ctx context.Context) (bool, error) {
			node, err := r.node(ctx, in)
			if err != nil {
				return false, err
			}
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
	}
	return instances
}

func (r *rig) node(ctx context.Context, in ec2.Instance) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, r.client.Get(ctx, types.NamespacedName{Name: in.PrivateDNSName}, node)
}

// record reads the Interruption of an instance; nil if it has none.
func (r *rig) record(ctx context.Context, id string) (*v1beta1.Interruption, error) {
	in := &v1beta1.Interruption{}
	err := r.client.Get(ctx, types.NamespacedName{Name: id}, in)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return in, nil
}

// reaches waits until an Interruption is in a phase, and returns it.
func (r *rig) reaches(id string, phase v1beta1.Phase, within time.Duration) *v1beta1.Interruption {
	r.t.Helper()
	var found *v1beta1.Interruption
	r.until(fmt.Sprintf("interruption %s to be %s", id, phase), within, func(ctx context.Context) (bool, error) {
		in, err := r.record(ctx, id)
		if err != nil || in == nil {
			return false, err
		}
		found = in
		return in.Status.Phase == phase, fmt.Errorf("phase %s, pods %+v", in.Status.Phase, drainOf(in).Pods)
	})
	return found
}

// apply creates objects.
func (r *rig) apply(objects ...client.Object) {
	r.t.Helper()
	for _, o := range objects {
		if err := r.client.Create(r.t.Context(), o); err != nil {
			r.t.Fatal(err)
		}
	}
}

// podsOn returns the pods bound to an instance's node.
func (r *rig) podsOn(in ec2.Instance) []corev1.Pod {
	r.t.Helper()
	var list corev1.PodList
	if err := r.client.List(r.t.Context(), &list, client.MatchingFields{"spec.nodeName": in.PrivateDNSName}); err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// send puts a message into the queue without EventBridge.
func (r *rig) send(body string) {
	r.t.Helper()
	url := r.State().QueueURL
	if _, err := r.sqs.SendMessage(r.t.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
		r.t.Fatal(err)
	}
}

// metric returns the sum of a lifeboatd metric's series whose labels contain the text; -1 if there
// are none.
func (r *rig) metric(name, labels string) float64 {
	r.t.Helper()
	return r.metricOf("lifeboatd", name, labels)
}

// metricOf is metric for another process of the sandbox.
func (r *rig) metricOf(of, name, labels string) float64 {
	r.t.Helper()
	var address string
	for _, part := range r.State().Parts {
		if part.Name == of {
			address = part.Address
		}
	}
	resp, err := http.Get(address)
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return -1
	}
	sum := -1.0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, labels) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err == nil {
			sum = max(sum, 0) + value
		}
	}
	return sum
}

// envelope writes a notice as EventBridge delivers it.
func envelope(id, detailType, account, region string, at time.Time, detail map[string]string) string {
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": id, "detail-type": detailType, "source": "aws.ec2", "account": account,
		"time": at.UTC().Format(time.RFC3339), "region": region, "resources": []string{}, "detail": detail,
	})
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return string(text)
}

// drainOf returns the drain status of an Interruption, or an empty one.
func drainOf(in *v1beta1.Interruption) v1beta1.DrainStatus {
	if in.Status.Drain == nil {
		return v1beta1.DrainStatus{}
	}
	return *in.Status.Drain
}
