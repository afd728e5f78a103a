package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

const (
	account = "210987654321"
	region  = "eu-west-1"

	// floorConnections is how many HTTP/2 connections the floor has. One connection carries
	// at most 100 requests at a time.
	floorConnections = 4
	floorUserAgent   = "bench-floor"
	// floorIntake is how many creates of the intake floor are in flight.
	floorIntake = 64
)

// rig is a cluster, an AWS account, and lifeboatd between them.
type rig struct {
	testing.TB
	dir             string
	cluster         *cluster
	cloud           *emulator.Server
	aws             *awssqs.Client
	url             string // of the emulator
	queue, queueURL string // lifeboatd's
	world           *world // shared by all parts
	admin           client.WithWatch
	// floor has the rights and the API priority of lifeboatd, over several connections.
	floor   []client.Client
	program string
	process *process.Process
}

// newRig starts everything except lifeboatd.
func newRig(tb testing.TB) *rig {
	tb.Helper()
	log.SetLogger(logr.Discard()) // else the client prints a warning
	r := &rig{TB: tb, dir: tb.TempDir(), world: &world{replicas: 1}}
	r.program = buildLifeboatd(tb, r.dir)
	r.cluster = startCluster(tb, r.dir)
	r.admin = r.client(r.cluster.RESTConfig())
	r.install()
	r.cloud, r.url = emulatortest.Serve(tb, emulator.Options{Account: account, Region: region})
	r.aws = awssqs.NewFromConfig(aws.Config{
		Region: region, BaseEndpoint: &r.url, Credentials: awshttp.StaticCredentials("AKIABENCH", "secret"),
	})
	return r
}

// newQueue creates a queue and returns its URL.
func (r *rig) newQueue(name string) string {
	r.Helper()
	out, err := r.aws.CreateQueue(r.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	r.must(err)
	return *out.QueueUrl
}

// buildLifeboatd builds lifeboatd from this tree. LIFEBOATD names another build instead, to
// compare two.
func buildLifeboatd(tb testing.TB, dir string) string {
	if given := os.Getenv("LIFEBOATD"); given != "" {
		return given
	}
	path, err := program.Lifeboatd(tb.Context(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// in returns the rig for a sub-benchmark.
func (r *rig) in(b *testing.B) *rig {
	part := *r
	part.TB = b
	return &part
}

// must ends the benchmark on an error.
func (r *rig) must(err error) {
	r.Helper()
	must(r.TB, err)
}

func (r *rig) client(config *rest.Config) client.WithWatch {
	r.Helper()
	scheme := runtime.NewScheme()
	r.must(errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)))
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	r.must(err)
	return c
}

// install applies the chart without its pods, and takes on the controller's identity.
func (r *rig) install() {
	r.Helper()
	m, err := chart.Render(r.Context(), chart.Options{Cluster: r.cluster.RESTConfig(), Values: map[string]any{
		"image": map[string]any{"repository": "lifeboatd"},
		"aws":   map[string]any{"queueURL": "http://127.0.0.1/" + account + "/lifeboat", "account": account, "region": region},
	}})
	r.must(err)
	r.must(r.admin.Create(r.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chart.Namespace}}))
	for _, o := range append(m.CRDs, m.Objects...) {
		if o.GetKind() == "Deployment" || o.GetKind() == "DaemonSet" {
			continue // no kubelet would run them
		}
		r.must(r.admin.Apply(r.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("helm"), client.ForceOwnership))
	}
	identity := r.identity()
	for range floorConnections {
		config := rest.CopyConfig(identity)
		// client-go shares a transport between equal configurations. A dialer of its own makes each different.
		config.Dial, config.UserAgent = (&net.Dialer{}).DialContext, floorUserAgent
		r.floor = append(r.floor, r.client(config))
	}
	r.until("the API server to serve Interruptions", time.Minute, func() (bool, error) {
		err := r.floor[0].List(r.Context(), &v1beta1.InterruptionList{})
		return err == nil, err
	})
}

// identity writes a kubeconfig of the chart's controller.
func (r *rig) identity() *rest.Config {
	r.Helper()
	config := r.cluster.RESTConfig()
	kube, err := kubernetes.NewForConfig(config)
	r.must(err)
	hours := int64(24 * 3600)
	token, err := kube.CoreV1().ServiceAccounts(chart.Namespace).CreateToken(r.Context(), chart.ControllerAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}, metav1.CreateOptions{})
	r.must(err)
	out := clientcmdapi.NewConfig()
	out.Clusters["bench"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["controller"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	out.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "controller", Namespace: chart.Namespace}
	out.CurrentContext = "bench"
	r.must(clientcmd.WriteToFile(*out, r.kubeconfig()))
	own, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig())
	r.must(err)
	return own
}

func (r *rig) kubeconfig() string { return filepath.Join(r.dir, "controller.kubeconfig") }

// ownQueue gives the next lifeboatd a new queue.
func (r *rig) ownQueue() {
	r.Helper()
	r.world.starts++
	r.queue = fmt.Sprintf("lifeboat-%d", r.world.starts)
	r.queueURL = r.newQueue(r.queue)
}

// start starts lifeboatd with a new queue and returns when it is ready.
func (r *rig) start(more ...string) {
	r.Helper()
	r.ownQueue()
	p := r.launch(more...)
	r.process = p.Process
	r.untilReady(p)
}

// startIntake starts lifeboatd as a replica that does not lead: it records
// notices and does nothing else.
func (r *rig) startIntake() {
	r.Helper()
	holder, seconds, now := "bench", int32(3600), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace, Name: "lifeboat-controller"}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	r.must(client.IgnoreAlreadyExists(r.admin.Create(r.Context(), lease)))
	r.start("--leader-elect=true", "--leader-election-namespace="+chart.Namespace)
}

// freeLease deletes the lease of startIntake.
func (r *rig) freeLease() {
	r.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace, Name: "lifeboat-controller"}}
	r.must(client.IgnoreNotFound(r.admin.Delete(r.Context(), lease)))
}

func (r *rig) stop() {
	r.Helper()
	r.must(r.process.Stop())
	r.process = nil
}

func (r *rig) logFile() string { return filepath.Join(r.dir, "lifeboatd.log") }

// environment is this process' own, without the developer's AWS and Kubernetes settings.
func environment(endpoint string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") && !strings.HasPrefix(kv, "KUBE") {
			env = append(env, kv)
		}
	}
	return append(env, "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION="+region, "AWS_ACCESS_KEY_ID=AKIABENCH", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
}

// until polls a condition. On timeout it fails with the end of lifeboatd's log.
func (r *rig) until(what string, within time.Duration, holds func() (bool, error)) {
	r.Helper()
	waitFor(r.TB, what, within, func() (bool, error) {
		ok, err := holds()
		if ok {
			return true, nil
		}
		return false, logEnd{r, err}
	})
}

// logEnd is an error that reads the end of lifeboatd's log only when it is printed.
type logEnd struct {
	r   *rig
	err error
}

func (e logEnd) Error() string {
	text, _ := os.ReadFile(e.r.logFile())
	return fmt.Sprintf("%v; lifeboatd's log ends:\n%s", e.err, text[max(0, len(text)-3000):])
}

// each calls do for 0 to n-1, with so many calls in flight.
func (r *rig) each(n, inFlight int, do func(ctx context.Context, i int) error) {
	r.Helper()
	var next, failed atomic.Int64
	var group sync.WaitGroup
	for range inFlight {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == 0; i = next.Add(1) - 1 {
				if err := do(r.Context(), int(i)); err != nil {
					failed.Add(1)
					r.Error(err)
				}
			}
		})
	}
	group.Wait()
	if failed.Load() > 0 {
		r.FailNow()
	}
}
