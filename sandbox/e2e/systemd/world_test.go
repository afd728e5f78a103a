//go:build e2e && linux

package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/sandbox/systemd"
)

const (
	group = "workers"
	// starts is a file of the machine with a line for each start of the kubelet.
	starts = "/var/log/kubelet-starts"
)

// world is an account with one group, whose only instance is a machine with systemd.
type world struct {
	t       *testing.T
	cloud   *emulator.Server
	network *systemd.Network
	machine *systemd.Machine
	id      string

	mu      sync.Mutex
	ready   bool     // nodes become Ready
	journal []string // starts of the kubelet, and answers to the hook, with the state at that time
}

// config has the differences between worlds.
type config struct {
	timeout int32 // of the hook, in seconds; 0: 10 min
	warm    bool  // the instance starts in a warm pool
	// running: the pool leaves its instances running.
	running bool
	// units has units of deploy/systemd to change, by name.
	units map[string]func(string) string
	// flags are more flags of the agent.
	flags string
	// repeat is a state. Once Auto Scaling has described it to the agent, each later description is the same.
	repeat string
}

func newWorld(t *testing.T, c config) *world {
	t.Helper()
	if err := systemd.Missing(); err != nil {
		need.Missing(t, err.Error())
	}
	cloud, err := emulator.New(emulator.Options{})
	must(t, err)
	w := &world{t: t, cloud: cloud}
	w.network, err = systemd.NewNetwork()
	must(t, err)
	t.Cleanup(func() { check(t, w.network.Close()) })
	w.serve(c)
	w.machine, err = systemd.New(t.TempDir(), w.network)
	must(t, err)
	t.Cleanup(func() {
		check(t, w.machine.Cut())
		if t.Failed() {
			w.explain()
		}
	})
	w.install(c)
	w.launch(c) // late, because its hook begins to wait
	stop, err := cloud.States.IMDS.ServeOn(t.Context(), w.id, func(context.Context) (net.Listener, error) {
		return w.network.Listen(systemd.Metadata + ":80")
	})
	must(t, err)
	t.Cleanup(stop)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// serve serves the API of AWS, and what the substitute for the kubelet asks.
func (w *world) serve(c config) {
	l, err := w.network.Listen(systemd.Gateway + ":80")
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.cloud.Work(ctx) })
	api := w.cloud.Handler()
	if c.repeat != "" {
		api = repeat(api, c.repeat)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path == kubeletPath {
			w.kubelet(out, in)
			return
		}
		api.ServeHTTP(out, in)
	})}
	running.Go(func() { _ = server.Serve(l) })
	w.t.Cleanup(func() {
		cancel()
		_ = server.Close()
		running.Wait()
	})
}

// kubelet records a start of the kubelet at its first request, and answers when its node is Ready.
func (w *world) kubelet(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := fmt.Sprintf("start %s of the kubelet in ", in.URL.Query().Get("start"))
	if !strings.Contains(strings.Join(w.journal, "\n"), entry) {
		w.journal = append(w.journal, entry+w.state())
	}
	if !w.ready {
		out.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (w *world) setReady(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = on
}

// state is the instance's state in its group.
func (w *world) state() string {
	member, _ := w.cloud.States.AutoScaling.Member(w.id)
	return string(member.State)
}

func (w *world) starts() int {
	text, err := os.ReadFile(w.machine.Path(starts))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// answers is how many calls to complete a lifecycle action the agent made.
func (w *world) answers() int { return w.cloud.Gate.Calls("autoscaling", "CompleteLifecycleAction") }

func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	timelimit.Until(w.t, what, 4*time.Minute, 1, func(context.Context) (bool, error) { return holds(), nil })
}

func (w *world) untilState(want string) {
	w.t.Helper()
	w.until("the instance is "+want, func() bool { return w.state() == want })
}

// launch creates the group with its hook, and waits for its instance.
func (w *world) launch(c config) {
	w.t.Helper()
	client := awsas.NewFromConfig(emulatortest.ConfigOver(w.cloud, emulatortest.Direct{Handler: w.cloud.Handler()}))
	_, err := w.cloud.States.EC2.CreateTemplate(group, "", "", ec2.TemplateData{ImageID: ec2.ImageID(ec2.X86), InstanceType: "m5.large"}, nil)
	must(w.t, err)
	ctx := w.t.Context()
	_, err = client.CreateAutoScalingGroup(ctx, &awsas.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(group), MinSize: aws.Int32(0), MaxSize: aws.Int32(1), DesiredCapacity: aws.Int32(0),
		VPCZoneIdentifier: aws.String(w.cloud.States.EC2.Subnets()[0].ID),
		LaunchTemplate:    &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(group), Version: aws.String("$Default")},
	})
	must(w.t, err)
	_, err = client.PutLifecycleHook(ctx, &awsas.PutLifecycleHookInput{
		AutoScalingGroupName: aws.String(group), LifecycleHookName: aws.String("lifeboat-launch"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
		DefaultResult: aws.String("CONTINUE"), HeartbeatTimeout: aws.Int32(cmp.Or(c.timeout, 600)),
	})
	must(w.t, err)
	if c.warm {
		pool := awsas.PutWarmPoolInput{AutoScalingGroupName: aws.String(group), MinSize: aws.Int32(1)}
		if c.running {
			pool.PoolState = types.WarmPoolStateRunning
		}
		_, err = client.PutWarmPool(ctx, &pool)
		must(w.t, err)
	} else {
		w.scale()
	}
	w.until("there is an instance", func() bool {
		for _, in := range w.cloud.States.EC2.Instances() {
			w.id = in.ID
		}
		return w.id != "" && strings.HasSuffix(w.state(), "Pending:Wait")
	})
}

// scale takes the instance into service.
func (w *world) scale() {
	w.t.Helper()
	client := awsas.NewFromConfig(emulatortest.ConfigOver(w.cloud, emulatortest.Direct{Handler: w.cloud.Handler()}))
	_, err := client.SetDesiredCapacity(w.t.Context(), &awsas.SetDesiredCapacityInput{AutoScalingGroupName: aws.String(group), DesiredCapacity: aws.Int32(1)})
	must(w.t, err)
}

// install writes programs and units to the machine's disk.
func (w *world) install(c config) {
	w.t.Helper()
	lifeboatd, err := program.Lifeboatd(w.t.Context(), w.t.TempDir())
	must(w.t, err)
	self, err := os.Executable()
	must(w.t, err)
	for path, from := range map[string]string{"/local/bin/lifeboatd": lifeboatd, "/local/bin/kubelet": self} {
		text, err := os.ReadFile(from)
		must(w.t, err)
		must(w.t, w.machine.Write(path, string(text), 0o755))
	}
	units := map[string]string{"kubelet.service": kubeletUnit, "kops-configuration.service": nodeupUnit}
	for _, name := range []string{"lifeboat-boot.service", "lifeboat-gate.service", "kubelet.service.d/05-lifeboat.conf"} {
		text, err := os.ReadFile(filepath.Join("../../../deploy/systemd", name))
		must(w.t, err)
		units[name] = string(text)
		if change := c.units[name]; change != nil {
			if units[name] = change(string(text)); units[name] == string(text) {
				w.t.Fatalf("the planted defect is not one: %s is unchanged", name)
			}
		}
	}
	for name, text := range units {
		must(w.t, w.machine.Write("/etc/systemd/system/"+name, text, 0o644))
	}
	must(w.t, w.machine.Write("/opt/kops/bin/nodeup", nodeup, 0o755))
	must(w.t, w.machine.Write("/etc/sysconfig/kubelet", "DAEMON_ARGS=\"\"\n", 0o644))
	must(w.t, w.machine.Write("/etc/sysconfig/kops-configuration", "", 0o644))
	must(w.t, w.machine.Write("/etc/environment", "", 0o644))
	must(w.t, w.machine.Write("/etc/lifeboat/boot.env", strings.Join([]string{
		"LIFEBOAT_BOOT_FLAGS=--poll-interval=1s " + c.flags, "AWS_REGION=" + emulator.DefaultRegion, "AWS_ENDPOINT_URL=http://" + systemd.Gateway,
		"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret", "",
	}, "\n"), 0o644))
	must(w.t, w.machine.Enable("lifeboat-boot.service"))
	must(w.t, w.machine.Enable("kops-configuration.service"))
}

// boot turns the power on, without the agent's status of an earlier boot.
func (w *world) boot() {
	w.t.Helper()
	if err := os.Remove(w.machine.Path("/var/lib/lifeboat/status.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	must(w.t, w.machine.Boot(w.t.Context()))
}

func (w *world) run(command ...string) string {
	w.t.Helper()
	out, err := w.machine.Run(w.t.Context(), command...)
	must(w.t, err)
	return out
}

// explain shows what happened beside a failure.
func (w *world) explain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Logf("state %s, journal:\n%s", w.state(), strings.Join(w.journal, "\n"))
	if err := w.machine.WriteJournal(context.Background(), w.t.Output()); err != nil {
		w.t.Log(err)
	}
}
