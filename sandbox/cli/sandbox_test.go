package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

// status is a sandbox that is up.
func status(name string) sandbox.Status {
	parts := []sandbox.Part{
		{Name: "control plane", PID: 101, Version: "v1.36.3", Address: "https://127.0.0.1:41234"},
		{Name: "lifeboatd", PID: 102},
	}
	return sandbox.Status{
		State: sandbox.State{
			Name: name, Kubeconfig: "/state/" + name + "/kubeconfig", AWSEndpoint: "http://127.0.0.1:41235",
			Account: "123456789012", Region: "us-east-1", QueueURL: "http://127.0.0.1:41235/123456789012/lifeboat",
			AccessKeyID: "AKIASANDBOX", SecretAccessKey: "it's a secret", Supervisor: 100, Started: clock.Add(-95 * time.Second),
			Parts: parts, Ready: true,
		},
		Running: true,
		Health:  []sandbox.PartStatus{{Part: parts[0], Alive: true}, {Part: parts[1], Alive: true}},
	}
}

// testHarness is a machine whose sandboxes start and stop.
type testHarness struct {
	up map[string]sandbox.Status
	// endpoint is that of the AWS of sandboxes which start; the one of status where empty.
	endpoint string
	started  []string
	report   *scenario.Report
	failure  error
	played   scenario.Options
	scenario string // the name of the scenario that ran
}

func (m *testHarness) use(s *session) {
	missing := func(name string) error {
		return fmt.Errorf("looking at the sandbox %s: %w", name, sandbox.ErrNotRunning)
	}
	s.sandboxes = sandboxes{
		start: func(_ context.Context, o sandbox.Options, self []string) (sandbox.State, error) {
			o.Progress(sandbox.Step{Name: "control plane", Detail: "https://127.0.0.1:41234", Done: true, Took: 3 * time.Second})
			started := status(o.Name)
			started.AWSEndpoint = cmp.Or(m.endpoint, started.AWSEndpoint)
			m.started, m.up[o.Name] = self, started
			return started.State, nil
		},
		inspect: func(name string) (sandbox.Status, error) {
			if found, ok := m.up[name]; ok {
				return found, nil
			}
			return sandbox.Status{}, missing(name)
		},
		list: func() ([]sandbox.Status, error) {
			var all []sandbox.Status
			for _, one := range m.up {
				all = append(all, one)
			}
			slices.SortFunc(all, func(a, b sandbox.Status) int { return strings.Compare(a.Name, b.Name) })
			return all, nil
		},
		stop: func(_ context.Context, name string, _ func(sandbox.Step)) error {
			if _, ok := m.up[name]; !ok {
				return missing(name)
			}
			delete(m.up, name)
			return nil
		},
		play: func(_ context.Context, sc *scenario.Scenario, o scenario.Options) (*scenario.Report, error) {
			m.played, m.scenario = o, sc.Name
			o.Moment(scenario.Moment{Kind: scenario.MomentNotice, Node: "a", Text: "AWS reclaims a"})
			return m.report, m.failure
		},
	}
}

func TestSandboxCommands(t *testing.T) {
	broken, dead := status("broken"), status("dead")
	broken.Health[1].Alive = false
	dead.Running = false
	m := &testHarness{up: map[string]sandbox.Status{"default": status("default"), "broken": broken, "dead": dead}}
	h := &harness{t: t, setup: m.use}
	var all strings.Builder
	for _, c := range []struct {
		args string
		code int
	}{
		{"sandbox status", command.ExitOK},
		{"sandbox status --sandbox broken", command.ExitFailed},
		{"sandbox status --sandbox dead", command.ExitFailed},
		{"sandbox status --sandbox nowhere", command.ExitFailed},
		{"sandbox list", command.ExitOK},
		{"sandbox env", command.ExitOK},
		{"sandbox env -o json", command.ExitOK},
		{"sandbox env --sandbox dead", command.ExitFailed},
		{"sandbox up", command.ExitFailed}, // it is up already
		{"sandbox down", command.ExitOK},
		{"sandbox down -o json", command.ExitOK}, // it is gone already
		{"sandbox up --sandbox second --boot-delay 30s", command.ExitOK},
		{"sandbox up --nodes 51", command.ExitUsage},
		{"sandbox up --karpenter-queue interruptions", command.ExitUsage},
	} {
		r := h.run(t.Context(), strings.Fields(strings.TrimPrefix(c.args, "sandbox "))...)
		if r.code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.args, r.code, c.code)
		}
		fmt.Fprintf(&all, "$ lifeboat %s\n%s%s", c.args, r.out, prefixed("! ", r.err))
	}
	golden(t, "sandbox.golden", all.String())
	if want := "--boot-delay=30s"; !slices.Contains(m.started, want) || !slices.Contains(m.started, "--sandbox=second") {
		t.Errorf("supervised by %q, which lacks %s", m.started, want)
	}
}

func TestEnvSaysWhatOldAWSCLINeeds(t *testing.T) {
	m := &testHarness{up: map[string]sandbox.Status{"second": status("second")}}
	for version, wants := range map[string]bool{"aws-cli/1.44.78 Python/3.11.8": true, "aws-cli/2.17.0 Python/3.11.8": false, "": false} {
		h := &harness{t: t, getenv: map[string]string{sandboxstate.NameEnv: "second"}, setup: func(s *session) {
			m.use(s)
			s.awsVersion = func(context.Context) string { return version }
		}}
		r := h.run(t.Context(), "env")
		if r.code != command.ExitOK || !strings.Contains(r.out, "export LIFEBOAT_SANDBOX='second'\n") || strings.Contains(r.out, "note:") {
			t.Errorf("%s: exit code %d\n%s", version, r.code, r.out)
		}
		if got := strings.Contains(r.err, `aws sqs --endpoint-url "$AWS_ENDPOINT_URL"`); got != wants {
			t.Errorf("%s: %q", version, r.err)
		}
	}
}

// The demo has a sandbox of its own, also when the environment selects another.
func TestDemoUsesSandboxOfFlagOnly(t *testing.T) {
	for _, args := range [][]string{{"demo"}, {"demo", "--sandbox", "mine"}} {
		m := &testHarness{report: &scenario.Report{Passed: true}}
		h := &harness{t: t, setup: m.use, getenv: map[string]string{sandboxstate.NameEnv: "second"}}
		h.run(t.Context(), args...)
		if want := strings.Join(args[1:], ""); m.played.Sandbox.Name != strings.TrimPrefix(want, "--sandbox") {
			t.Errorf("%v: played in the sandbox %q", args, m.played.Sandbox.Name)
		}
	}
}

func prefixed(prefix, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(prefix + line)
	}
	return b.String()
}

// `up` must start a command line that this program accepts.
func TestUpAndSuperviseFlagsMatch(t *testing.T) {
	var got sandbox.Options
	m := &testHarness{up: map[string]sandbox.Status{}}
	h := &harness{t: t, setup: func(s *session) {
		m.use(s)
		s.sandboxes.supervise = func(_ context.Context, o sandbox.Options) error {
			got = o
			return nil
		}
	}}
	if r := h.run(t.Context(), "up", "--sandbox", "second", "--boot-delay", "30s", "--region", "eu-west-1", "--no-lifeboat",
		"--karpenter", "--karpenter-queue", "interruptions", "--unkind", "7"); r.code != command.ExitOK {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	if r := h.run(t.Context(), m.started[1:]...); r.code != command.ExitOK {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	if got.Name != "second" || got.BootDelay != 30*time.Second || got.Region != "eu-west-1" || !got.NoLifeboat ||
		!got.Karpenter || got.KarpenterQueue != "interruptions" || !got.KarpenterOwnQueue || got.Account != "123456789012" || got.Unkind != 7 {
		t.Errorf("supervised %+v", got)
	}
}

// The nodes are launched over the wire; a fake of the simulated machines makes nodes of the
// instances.
func TestUpLaunchesNodes(t *testing.T) {
	server, endpoint := emulatortest.Serve(t, emulator.Options{Timing: ec2.Timing{PendingFor: time.Millisecond}})
	m := &testHarness{up: map[string]sandbox.Status{}, endpoint: endpoint}
	lists := 0
	funcs := interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		lists++
		for i, instance := range server.States.EC2.Instances() {
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: instance.PrivateDNSName},
				Spec:       corev1.NodeSpec{ProviderID: "aws:///" + instance.Zone + "/" + instance.ID},
			}
			if lists > i { // one more is ready each time
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			}
			list.(*corev1.NodeList).Items = append(list.(*corev1.NodeList).Items, *n)
		}
		return nil
	}}
	cluster := fake.NewClientBuilder().WithInterceptorFuncs(funcs).Build()
	h := &harness{t: t, setup: func(s *session) {
		m.use(s)
		s.connect = func(sandbox.State) (client.Client, error) { return cluster, nil }
	}}
	r := h.run(t.Context(), "up", "--nodes", "2", "-o", "json")
	if r.code != command.ExitOK || lists < 2 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	var state sandbox.State
	if err := json.Unmarshal([]byte(r.out), &state); err != nil || state.Kubeconfig == "" {
		t.Errorf("%v: %s", err, r.out)
	}
	var zones []string
	for _, instance := range server.States.EC2.Instances() {
		if !instance.Spot() {
			t.Errorf("%s is no spot instance", instance.ID)
		}
		if boot, err := machines.BootTime(instance, time.Minute); err != nil || boot != sandbox.FastBoot {
			t.Errorf("the first nodes take %s: %v", boot, err)
		}
		zones = append(zones, instance.Zone)
	}
	if !slices.Equal(zones, []string{"us-east-1a", "us-east-1b"}) {
		t.Errorf("zones %v", zones)
	}
}

func TestDemo(t *testing.T) {
	passed := &scenario.Report{Scenario: "first-voyage", Title: "First voyage", Notices: 2, PodsMoved: 4, Passed: true, Pods: []scenario.PodReport{}}
	failed := &scenario.Report{Scenario: "first-voyage", Title: "First voyage", PodsLost: 1, Failures: []string{"a pod was lost"}, Pods: []scenario.PodReport{}}
	mine := filepath.Join(t.TempDir(), "mine.txtar")
	if err := os.WriteFile(mine, []byte("nonsense\n-- script --\nnod a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		args    []string
		report  *scenario.Report
		failure error
		code    int
		says    string
	}{
		{"passed", nil, passed, nil, command.ExitOK, ""},
		{"an expectation failed", nil, failed, &scenario.FailedError{Scenario: "first-voyage", Failures: failed.Failures}, command.ExitFailed, ""},
		{"it could not be played", nil, nil, fmt.Errorf("starting etcd: no room"), command.ExitFailed, "error: starting etcd: no room"},
		{"the small one", []string{"--small"}, passed, nil, command.ExitOK, ""},
		{"the small one and another", []string{"--small", "surge"}, nil, nil, command.ExitUsage, "--small plays first-voyage: leave surge out, or --small"},
		{"no such scenario", []string{"second-voyage"}, nil, nil, command.ExitUsage, "first-voyage, "},
		{"no such file", []string{"./nowhere.txtar"}, nil, nil, command.ExitFailed, "reading the scenario"},
		{"a file that is wrong", []string{mine}, nil, nil, command.ExitFailed, "mine.txtar"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &testHarness{report: c.report, failure: c.failure}
			h := &harness{t: t, setup: m.use}
			r := h.run(t.Context(), append([]string{"demo", "-o", "json"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.err, c.says) {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			if c.report == nil {
				if r.out != "" {
					t.Errorf("standard output %q", r.out)
				}
				return
			}
			var got scenario.Report
			if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.PodsMoved != c.report.PodsMoved || got.Passed != c.report.Passed {
				t.Errorf("%v: standard output is not the report alone: %s", err, r.out)
			}
			if !strings.Contains(r.err, "AWS reclaims a") {
				t.Errorf("the timeline is not on standard error: %s", r.err)
			}
			if m.played.Sandbox.Name != "" {
				t.Errorf("played in the sandbox %q, want the scenario's own", m.played.Sandbox.Name)
			}
		})
	}
}

func TestDemoScenario(t *testing.T) {
	for args, want := range map[string]string{"": "spot-walkthrough 0s", "--small": "first-voyage 0s", "surge": "surge 0s", "--boot-delay=3s": "spot-walkthrough 3s"} {
		m := &testHarness{report: &scenario.Report{Passed: true}}
		r := (&harness{t: t, setup: m.use}).run(t.Context(), append([]string{"demo"}, strings.Fields(args)...)...)
		if !strings.Contains(r.out, "AWS reclaims a") {
			t.Errorf("the timeline is not on standard output: %s", r.out)
		}
		if got := m.scenario + " " + m.played.Sandbox.BootDelay.String(); got != want {
			t.Errorf("demo %s played %s, want %s", args, got, want)
		}
	}
}

// The demo itself and its report do not differ. The sandbox stays until Ctrl-C.
func TestDemoConsoleKeepsSandboxUntilCtrlC(t *testing.T) {
	for _, withConsole := range []bool{false, true} {
		m := &testHarness{report: &scenario.Report{Passed: true}}
		args := []string{"demo"}
		if withConsole {
			args = append(args, "--console")
		}
		if r := (&harness{t: t, setup: m.use}).run(t.Context(), args...); r.code != command.ExitOK {
			t.Fatalf("exit code %d: %s", r.code, r.err)
		}
		if (m.played.Up != nil) != withConsole || (m.played.Before != nil) != withConsole {
			t.Fatalf("console %v: called when up %v, called before the end %v", withConsole, m.played.Up != nil, m.played.Before != nil)
		}
		if withConsole {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			m.played.Before(ctx) // returns, since ctx ended
		}
	}
}
