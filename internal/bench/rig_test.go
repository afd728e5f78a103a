package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/awsemutest"
	"github.com/lifeboat-dev/lifeboat/internal/chart"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/controlplane"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/process"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
)

const (
	account = "210987654321"
	region  = "eu-west-1"
)

// rig is a cluster, an AWS account, and lifeboatd between them.
type rig struct {
	testing.TB
	dir             string
	cluster         *controlplane.ControlPlane
	cloud           *awsemu.Server
	aws             *awssqs.Client
	url             string // of the emulator
	queue, queueURL string // lifeboatd's
	rounds          int
	// admin may do everything; peer is what lifeboatd is to the API server, so
	// that a floor is measured with the same rights and the same priority.
	admin, peer client.WithWatch
	peerConfig  *rest.Config
	program     string
	process     *process.Process
}

// newRig starts all but lifeboatd.
func newRig(tb testing.TB) *rig {
	tb.Helper()
	r := &rig{TB: tb, dir: tb.TempDir()}
	r.program = buildLifeboatd(tb, r.dir)
	programs, err := assets.Ensure(tb.Context(), tb.Output())
	r.must(err)
	r.cluster, err = controlplane.Start(tb.Context(), controlplane.Options{
		Binary: programs.Kubernetes, Dir: filepath.Join(r.dir, "cluster"),
		// Nodes have no kubelets here: nothing is to find them dead, and nothing
		// is to compete for the processors.
		ControllerManagerArgs: []string{"--controllers=serviceaccount-controller"},
		APIServerArgs:         []string{"--delete-collection-workers=16"},
	})
	r.must(err)
	tb.Cleanup(r.cluster.Kill9) // its data is thrown away
	r.must(r.cluster.WaitDefaultServiceAccount(tb.Context(), "default"))
	r.admin = r.client(r.cluster.RESTConfig())
	r.install()
	r.cloud, r.url = awsemutest.Serve(tb, awsemu.Options{Account: account, Region: region})
	r.aws = awssqs.NewFromConfig(aws.Config{
		Region: region, BaseEndpoint: &r.url, Credentials: credentials.NewStaticCredentialsProvider("AKIABENCH", "secret", ""),
	})
	return r
}

// newQueue makes a queue and returns its URL.
func (r *rig) newQueue(name string) string {
	r.Helper()
	out, err := r.aws.CreateQueue(r.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	r.must(err)
	return *out.QueueUrl
}

// buildLifeboatd builds the program under test, or takes the one that
// LIFEBOATD names, to compare two.
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

// must ends the benchmark on an error.
func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) client(config *rest.Config) client.WithWatch {
	r.Helper()
	scheme := runtime.NewScheme()
	r.must(errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	r.must(err)
	return c
}

// install applies the chart and takes on the controller's identity.
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
			continue // there is nothing here to run them
		}
		r.must(r.admin.Apply(r.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("helm"), client.ForceOwnership))
	}
	r.peerConfig = r.identity()
	r.peer = r.client(rest.CopyConfig(r.peerConfig))
	r.until("the API server to serve Interruptions", time.Minute, func() (bool, error) {
		err := r.peer.List(r.Context(), &v1alpha1.InterruptionList{})
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

// start starts lifeboatd, on a queue of its own, and returns when it is ready.
func (r *rig) start(more ...string) {
	r.Helper()
	r.rounds++
	r.queue = fmt.Sprintf("lifeboat-%d", r.rounds)
	r.queueURL = r.newQueue(r.queue)
	health, err := process.FreeAddress()
	r.must(err)
	args := append([]string{
		"controller", "--kubeconfig=" + r.kubeconfig(), "--queue-url=" + r.queueURL, "--region=" + region,
		"--metrics-bind-address=0", "--health-probe-bind-address=" + health, "--leader-elect=false",
	}, more...)
	r.process, err = process.Start(r.Context(), process.Options{
		Name: "lifeboatd", Path: r.program, Args: args, Env: environment(r.url), Dir: r.dir, LogFile: filepath.Join(r.dir, "lifeboatd.log"),
	})
	r.must(err)
	r.Cleanup(r.process.Kill9)
	r.until("lifeboatd to become ready", 30*time.Second, func() (bool, error) {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false, errors.Join(err, r.process.Err())
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// startIntake starts lifeboatd as a replica that does not lead: it takes
// notices in and does nothing else.
func (r *rig) startIntake() {
	r.Helper()
	holder, seconds, now := "bench", int32(3600), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace, Name: "lifeboat-controller"}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	r.must(client.IgnoreAlreadyExists(r.admin.Create(r.Context(), lease)))
	r.start("--leader-elect=true", "--leader-election-namespace="+chart.Namespace)
}

func (r *rig) stop() {
	r.Helper()
	r.must(r.process.Stop())
}

// cost is the processor time that was spent so far: by the API server with etcd,
// by lifeboatd, and here, where the emulator runs.
type cost struct{ cluster, lifeboat, here time.Duration }

func (r *rig) cost() cost {
	r.Helper()
	c := cost{cluster: r.spent(r.cluster.PID()), here: r.spent(os.Getpid())}
	if r.process != nil {
		c.lifeboat = r.spent(r.process.PID())
	}
	return c
}

// spent reads the processor time of a process, in ticks of 10 ms (proc_pid_stat(5)).
func (r *rig) spent(pid int) time.Duration {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // it has ended, or this is no Linux
	}
	var ticks time.Duration
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		r.must(err)
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// environment is this one, without a developer's own AWS and Kubernetes.
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

// until waits for a condition.
func (r *rig) until(what string, within time.Duration, holds func() (bool, error)) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(r.dir, "lifeboatd.log"))
			r.Fatal(fmt.Errorf("waited %s for %s: %w; lifeboatd's log ends:\n%s", within, what, err, log[max(0, len(log)-3000):]))
		case <-tick.C:
		}
	}
}
