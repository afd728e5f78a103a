//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// workers is an Auto Scaling group of the cluster without instances.
const workers = "workers"

// patient is a sandbox in which the chart's workloads run as pods, so that the doctor sees
// what it sees in a user's cluster.
type patient struct {
	*rig

	events *eventbridge.Client
	// path has the programs lifeboat, helm and kubectl, and a substitute for aws. env is their
	// environment.
	path string
	env  []string
}

// of returns the patient for a subtest.
func (p *patient) of(t *testing.T) *patient {
	q, r := *p, *p.rig
	r.t, q.rig = t, &r
	return &q
}

func (p *patient) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// newPatient installs Lifeboat as a user does. o.NoLifeboat is set.
func newPatient(t *testing.T, o sandbox.Options) *patient {
	t.Helper()
	o.NoLifeboat = true
	r := newRigWith(t, o)
	st := r.State()
	p := &patient{rig: r, events: eventbridge.NewFromConfig(r.AWSConfig())}
	p.path = p.programs()
	p.env = append(os.Environ(), "PATH="+p.path+string(os.PathListSeparator)+os.Getenv("PATH"), "HELM_NO_PLUGINS=1", "HOME="+p.path,
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull)
	for _, v := range st.Env() {
		p.env = append(p.env, v.Name+"="+v.Value)
	}
	p.env = append(p.env, sandboxstate.NameEnv+"=") // the commands are those of a cluster on AWS
	r.launch(2)
	cluster := r.Wiring().Cluster
	p.must(r.AWS().States.AutoScaling.CreateGroup(autoscaling.Group{Name: workers, Max: 3, Tags: map[string]string{"kubernetes.io/cluster/" + cluster: "owned"}}))
	p.lifeboat("aws", "setup", "--cluster", cluster, "--groups", workers, "--yes")
	p.apply(webDeployment())
	p.shell("helm install lifeboat charts/lifeboat --namespace lifeboat-system --skip-crds --take-ownership --set image.repository=lifeboatd --set-string aws.queueURL=" + st.QueueURL)
	p.elect()
	p.until("the pods to be ready", time.Minute, func(ctx context.Context) (bool, error) { return p.ready(ctx) })
	return p
}

// ready reports whether all Deployments and the agents are ready.
func (p *patient) ready(ctx context.Context) (bool, error) {
	var all appsv1.DeploymentList
	var agents appsv1.DaemonSet
	if err := errors.Join(p.client.List(ctx, &all), p.client.Get(ctx, client.ObjectKey{Namespace: chart.Namespace, Name: chart.AgentAccount}, &agents)); err != nil {
		return false, err
	}
	for _, d := range all.Items {
		if d.Spec.Replicas != nil && d.Status.ReadyReplicas < *d.Spec.Replicas {
			return false, fmt.Errorf("%s has %d ready replicas", d.Name, d.Status.ReadyReplicas)
		}
	}
	return agents.Status.NumberReady == 2, fmt.Errorf("%d agents are ready", agents.Status.NumberReady)
}

// webDeployment is a workload that an interruption does not harm.
func webDeployment() *appsv1.Deployment {
	two, labels := int32(2), map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}},
		},
	}
}

// reported is a finding in the doctor's JSON.
type reported struct {
	Severity, ID, Object, Problem, Fix string
}

// findings runs the doctor as a user does.
func (p *patient) findings() []reported {
	p.t.Helper()
	return p.findingsWith()
}

// findingsWith runs the doctor with further flags.
func (p *patient) findingsWith(flags ...string) []reported {
	p.t.Helper()
	var report struct{ Findings []reported }
	out := p.lifeboat(append([]string{"doctor", "--cluster", p.Wiring().Cluster, "-o", "json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		p.t.Fatalf("%v:\n%s", err, out)
	}
	return report.Findings
}

// lifeboat runs the program lifeboat and returns its standard output.
func (p *patient) lifeboat(args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(p.path, "lifeboat"), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &errs
	if err := cmd.Run(); err != nil && args[0] != "doctor" || out.Len() == 0 {
		p.t.Fatalf("lifeboat %q: %v\n%s%s", args, err, out.String(), errs.String())
	}
	return out.String()
}

// beyond returns the findings that are not among those of a well installation.
func beyond(all, well []reported) []reported {
	var more []reported
	for _, f := range all {
		known := false
		for _, w := range well {
			known = known || f.ID == w.ID && f.Object == w.Object
		}
		if !known {
			more = append(more, f)
		}
	}
	return more
}

func has(all []reported, id string) bool {
	for _, f := range all {
		if f.ID == id {
			return true
		}
	}
	return false
}

func errFound(all []reported) error {
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprintf("%s of %s: %s\n  %s", f.ID, f.Object, f.Problem, f.Fix))
	}
	return errors.New(strings.Join(out, "\n"))
}

// target calls use with the target of the spot rule.
func (p *patient) target(use func(ebtypes.Target)) {
	name := p.spotRule()
	out, err := p.events.ListTargetsByRule(p.t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: &name})
	p.must(err)
	use(out.Targets[0])
}

// retarget changes the target of the spot rule.
func (p *patient) retarget(edit func(*ebtypes.Target)) {
	name := p.spotRule()
	p.target(func(t ebtypes.Target) {
		edit(&t)
		_, err := p.events.PutTargets(p.t.Context(), &eventbridge.PutTargetsInput{Rule: &name, Targets: []ebtypes.Target{t}})
		p.must(err)
	})
}

// programs fills a directory with the programs that the doctor's fixes call. The machine of
// CI has no aws: the substitute knows the one question whose answer is part of a fix.
func (p *patient) programs() string {
	p.t.Helper()
	dir := p.t.TempDir()
	_, err := program.Lifeboat(p.t.Context(), dir)
	p.must(err)
	paths, err := assets.EnsureHelm(p.t.Context(), os.Stderr)
	p.must(err)
	for _, name := range []string{"helm", "kubectl"} {
		p.must(os.Symlink(filepath.Join(paths.Clients, name), filepath.Join(dir, name)))
	}
	answer := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = \"sqs get-queue-url --queue-name %s --query QueueUrl --output text\" ] && echo %s\n", p.Wiring().Queue.Name, p.State().QueueURL)
	p.must(os.WriteFile(filepath.Join(dir, "aws"), []byte(answer), 0o755))
	return dir
}

// shell runs a command in the repository, as a person does who copies it.
func (p *patient) shell(command string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), p.env
	out, err := cmd.CombinedOutput()
	p.t.Logf("$ %s", command)
	if err != nil {
		p.t.Errorf("%v:\n%s", err, out)
	}
}

// elect writes the lease of a leader, as a started controller does.
func (p *patient) elect() {
	p.t.Helper()
	holder, seconds, now := "lifeboat-controller-a", int32(86400), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace, Name: chart.ControllerAccount},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now},
	}
	p.must(client.IgnoreAlreadyExists(p.client.Create(p.t.Context(), lease)))
}
