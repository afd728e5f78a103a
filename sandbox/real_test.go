//go:build e2e

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/images"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// needRealNodes skips or fails the test if instances cannot be real.
func needRealNodes(t *testing.T) {
	t.Helper()
	if err := instances.Missing(); err != nil {
		need.Missing(t, err.Error())
	}
}

// realWorld is a sandbox in this process with real instances.
type realWorld struct {
	*sandbox.Sandbox
	t      *testing.T
	client *kubernetes.Clientset
}

func upReal(t *testing.T, name string) realWorld {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{
		Name: name, Dir: filepath.Join(t.TempDir(), name), RealNodes: true, NoLifeboat: true, Lifeboatd: buildLifeboatd(t),
		AgentArgs: []string{"--metrics-bind-address=0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s is up after %s", name, time.Since(begun).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return realWorld{Sandbox: s, t: t, client: client}
}

// buildLifeboatd builds the program for agents.
func buildLifeboatd(t *testing.T) string {
	t.Helper()
	path, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// launch launches an instance through the EC2 API and waits until its node is Ready.
func (r realWorld) launch(tags map[string]string) ec2.Instance {
	r.t.Helper()
	begun := time.Now()
	var on []types.Tag
	for k, v := range tags {
		on = append(on, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	out, err := awsec2.NewFromConfig(r.AWSConfig()).RunInstances(r.t.Context(), &awsec2.RunInstancesInput{
		ImageId: aws.String("ami-0123456789abcdef0"), InstanceType: types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		InstanceMarketOptions: &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot},
		TagSpecifications:     []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: on}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	in, _ := r.EC2().Instance(aws.ToString(out.Instances[0].InstanceId))
	until(r.t, "the node of "+in.ID+" to be Ready", func() bool { n := r.node(in); return n != nil && nodeindex.Ready(n) })
	r.t.Logf("%s was Ready %s after its launch", in.PrivateDNSName, time.Since(begun).Round(time.Millisecond))
	return in
}

// node is the Node of an instance, nil if there is none.
func (r realWorld) node(in ec2.Instance) *corev1.Node {
	r.t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.t.Context(), in.PrivateDNSName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// processes returns the processes in an instance's cgroup.
func (r realWorld) processes(in ec2.Instance) string {
	r.t.Helper()
	found, err := filepath.Glob("/sys/fs/cgroup/*/lifeboat-*/" + in.ID + "-*/cgroup.procs")
	if err != nil {
		r.t.Fatal(err)
	}
	text := ""
	for _, path := range found {
		procs, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			r.t.Fatal(err)
		}
		text += string(procs)
	}
	return text
}

func TestRealInstanceLifecycle(t *testing.T) {
	needRealNodes(t)
	before := machineState(t)
	r := upReal(t, "real")
	in := r.launch(map[string]string{machines.TagNodeLabels: "pool=a", machines.TagNodeTaints: "spot=true:NoSchedule"})
	r.launch(map[string]string{machines.TagNoAgent: ""})

	n := r.node(in)
	if n.Labels["pool"] != "a" || n.Spec.ProviderID != "aws:///"+in.Zone+"/"+in.ID || n.Status.NodeInfo.BootID != in.BootID {
		t.Errorf("labels %v, provider id %s, boot id %s", n.Labels, n.Spec.ProviderID, n.Status.NodeInfo.BootID)
	}
	if !strings.Contains(n.Status.NodeInfo.ContainerRuntimeVersion, "containerd://2") || n.Status.Allocatable.Cpu().String() != "1930m" {
		t.Errorf("runtime %s, allocatable %v", n.Status.NodeInfo.ContainerRuntimeVersion, n.Status.Allocatable)
	}
	r.runPod(in)
	r.agentReads(in)
	r.reboot(in)
	r.reclaim(in)
	if diff := cmp.Diff(before, machineState(t)); diff != "" {
		t.Errorf("this machine has changed (-before +now):\n%s", diff)
	}
}

// runPod runs a pod on the tainted instance and reads its log.
func (r realWorld) runPod(in ec2.Instance) {
	r.t.Helper()
	pods := r.client.CoreV1().Pods("default")
	_, err := pods.Create(r.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "server"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"pool": "a"},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:   []corev1.Container{{Name: "server", Image: images.Workload, ImagePullPolicy: corev1.PullNever, Args: []string{"server"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "the pod to be running", func() bool {
		p, err := pods.Get(r.t.Context(), "server", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == in.PrivateDNSName
	})
	// From the API server's network through the kubelet's port.
	until(r.t, "the pod's log", func() bool {
		log, err := pods.GetLogs("server", &corev1.PodLogOptions{}).DoRaw(r.t.Context())
		return err == nil && strings.Contains(string(log), "started")
	})
}

// agentReads checks that an agent on the node reads the instance's own metadata, also after a
// restart.
func (r realWorld) agentReads(in ec2.Instance) {
	r.t.Helper()
	for range 2 {
		if err := r.StartAgents(); err != nil {
			r.t.Fatal(err)
		}
		reads := r.AWS().States.IMDS.Reads(in.ID)
		until(r.t, "the agent to read the metadata", func() bool { return r.AWS().States.IMDS.Reads(in.ID) > reads })
		if err := r.StopAgents(); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, other := range r.EC2().Instances() {
		if other.ID != in.ID && r.AWS().States.IMDS.Reads(other.ID) > 0 {
			r.t.Error("an instance with TagNoAgent has an agent")
		}
	}
}

func (r realWorld) reboot(in ec2.Instance) {
	r.t.Helper()
	if err := r.EC2().Reboot([]string{in.ID}); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "the instance to be back", func() bool {
		n := r.node(in)
		now, _ := r.EC2().Instance(in.ID)
		return now.BootID != in.BootID && n.Status.NodeInfo.BootID == now.BootID && nodeindex.Ready(n)
	})
}

// reclaim interrupts a spot instance and checks the order of the steps.
func (r realWorld) reclaim(in ec2.Instance) {
	r.t.Helper()
	off := make(chan time.Time, 1)
	cancel := r.EC2().Subscribe(func(c ec2.Change) {
		if c.What == ec2.PowerOff && c.Instance.ID == in.ID {
			off <- time.Now()
		}
	})
	defer cancel()
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{Notice: 2 * time.Second}); err != nil {
		r.t.Fatal(err)
	}
	cut := <-off
	until(r.t, "its processes to be gone", func() bool { return r.processes(in) == "" })
	r.t.Logf("nothing of the instance was left %s after the power cut", time.Since(cut).Round(time.Millisecond))
	if n := r.node(in); n == nil || !nodeindex.Ready(n) {
		r.t.Error("its Node is not there and Ready: the loss of power is not visible yet")
	}
	until(r.t, "its Node to be deleted", func() bool { return r.node(in) == nil })
	if silent := time.Since(cut); silent < 15*time.Second {
		r.t.Errorf("the Node was deleted %s after the power cut, before it can have been NotReady", silent)
	}
}

// machineState returns what a sandbox must not change: devices, mounts and named network
// namespaces.
func machineState(t *testing.T) map[string][]string {
	t.Helper()
	state := map[string][]string{}
	for _, dir := range []string{"/sys/class/net", "/run/netns"} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			state[dir] = append(state[dir], e.Name())
		}
	}
	for _, file := range []string{"/proc/self/mounts", "/proc/net/route"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		state[file] = strings.Split(string(text), "\n")
	}
	return state
}

// TestRealInstancesInParallel runs two sandboxes with the same addresses, ports and names inside.
func TestRealInstancesInParallel(t *testing.T) {
	needRealNodes(t)
	a, b := upReal(t, "side-a"), upReal(t, "side-b")
	first, second := a.launch(nil), b.launch(nil)
	if first.PrivateIP != second.PrivateIP {
		t.Errorf("addresses %s and %s: the test needs equal ones", first.PrivateIP, second.PrivateIP)
	}
	if err := a.Down(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob("/sys/fs/cgroup/*/lifeboat-side-a-*"); err != nil || len(left) > 0 {
		t.Errorf("the stopped sandbox left %v (%v)", left, err)
	}
	if b.processes(second) == "" {
		t.Fatal("the other's instance went with the first")
	}
	renewed := b.lease(second)
	until(t, "the other's kubelet to renew its lease", func() bool { return b.lease(second).After(renewed) })
}

func (r realWorld) lease(in ec2.Instance) time.Time {
	r.t.Helper()
	l, err := r.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(r.t.Context(), in.PrivateDNSName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return time.Time{} // the kubelet creates it shortly after the Node
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return l.Spec.RenewTime.Time
}

// TestKilledSupervisorEndsInstances kills the supervisor as a crash would, with a running instance,
// and starts the same sandbox again.
func TestKilledSupervisorEndsInstances(t *testing.T) {
	needRealNodes(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv(superviseReal, "1")
	const name = "killed-real"
	st, err := start(t, name)
	if err != nil {
		t.Fatal(err)
	}
	launchIn(t, st)
	left := func() []string {
		found, err := filepath.Glob("/sys/fs/cgroup/*/lifeboat-" + name + "-*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	procs := func() string {
		all := ""
		for _, dir := range left() {
			err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
				if filepath.Base(path) == "cgroup.procs" {
					text, _ := os.ReadFile(path) // it may be deleted at the same time
					all += string(text)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	if len(left()) == 0 || procs() == "" {
		t.Fatal("the instance is in no cgroup: the test would see nothing of it")
	}
	if err := syscall.Kill(st.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "its processes to end", func() bool { return ended(st) })
	until(t, "its instances' processes to end", func() bool { return procs() == "" })
	if err := sandbox.Stop(context.Background(), name, nil); err != nil {
		t.Fatal(err)
	}
	if dirs := left(); len(dirs) > 0 {
		t.Errorf("left behind: %v", dirs)
	}
}

// launchIn launches an instance in a sandbox of another process.
func launchIn(t *testing.T, st sandbox.State) {
	t.Helper()
	for _, v := range st.Env() {
		t.Setenv(v.Name, v.Value)
	}
	api := awsec2.New(awsec2.Options{
		BaseEndpoint: aws.String(st.AWSEndpoint), Region: st.Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: st.AccessKeyID, SecretAccessKey: st.SecretAccessKey}, nil
		}),
	})
	_, err := api.RunInstances(t.Context(), &awsec2.RunInstancesInput{
		ImageId: aws.String("ami-0123456789abcdef0"), InstanceType: types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", st.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "a node", func() bool {
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 1
	})
}
