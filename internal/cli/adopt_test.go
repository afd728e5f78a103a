package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/adopt"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// cutOver is a cluster with Karpenter, which reads its queue, and with a Lifeboat that is wired well.
type cutOver struct {
	*awsAccount

	karpenter *appsv1.Deployment
	helm      []string
	// alive is false once lifeboatd does not run; dies stops it when Karpenter's Deployment changes.
	alive, dies bool
}

func newCutOver(t *testing.T, objects ...client.Object) *cutOver {
	t.Helper()
	e := &cutOver{awsAccount: newAWSAccount(t), alive: true}
	e.want(e.aws("setup", "--yes"), ExitOK)
	if _, err := e.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("Karpenter-prod")}); err != nil {
		t.Fatal(err)
	}
	e.spotRule()
	inner := e.setup
	e.setup = func(s *session) {
		inner(s)
		find := s.findSandbox
		s.findSandbox = func(name string) (connection, error) {
			c, err := find(name)
			c.lifeboatd = &doctor.Process{Alive: e.alive}
			return c, err
		}
		s.runHelm = func(_ context.Context, args []string) error {
			e.helm = append(e.helm, strings.Join(args, " "))
			d := e.deployment()
			_, d.Spec.Template.Spec.Containers[0].Env[0].Value, _ = strings.Cut(args[len(args)-1], "=")
			return e.cluster.Update(t.Context(), d)
		}
	}
	e.karpenter = karpenterDeployment()
	one := int32(1)
	e.karpenter.Spec.Replicas = &one
	e.karpenter.Spec.Template.Spec.Containers[0].Env[0].Value = "Karpenter-prod"
	e.karpenter.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	e.cluster = fakeCluster(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			e.alive = e.alive && !e.dies
			return c.Patch(ctx, o, p, opts...)
		},
	}, append(objects, e.karpenter)...)
	return e
}

// spotRule creates the rule that Karpenter's own installation has.
func (e *cutOver) spotRule() {
	e.t.Helper()
	_, err := e.rules.PutRule(e.t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("KarpenterSpotInterrupt"), EventPattern: aws.String(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`),
	})
	if err == nil {
		_, err = e.rules.PutTargets(e.t.Context(), &eventbridge.PutTargetsInput{
			Rule:    aws.String("KarpenterSpotInterrupt"),
			Targets: []ebtypes.Target{{Id: aws.String("q"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:Karpenter-prod")}},
		})
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *cutOver) deployment() *appsv1.Deployment {
	e.t.Helper()
	d := &appsv1.Deployment{}
	if err := e.cluster.Get(e.t.Context(), client.ObjectKeyFromObject(e.karpenter), d); err != nil {
		e.t.Fatal(err)
	}
	return d
}

// queue is the queue that Karpenter reads.
func (e *cutOver) queue() string { return describeKarpenter(e.deployment()).Queue }

func (e *cutOver) adopt(args ...string) result {
	e.t.Helper()
	r := e.run(e.t.Context(), append(append([]string{"adopt", "karpenter"}, args...), "--sandbox=default", "--cluster", "prod")...)
	r.out = strings.ReplaceAll(r.out, e.url, "https://sqs")
	return r
}

func (e *cutOver) says(r result, texts ...string) {
	e.t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			e.t.Errorf("the output does not have %q:\n%s%s", text, r.out, r.err)
		}
	}
}

func TestAdoptKarpenterAndBack(t *testing.T) {
	e := newCutOver(t)
	plan := e.adopt("plan")
	e.want(plan, ExitChanges)
	golden(t, "adopt-plan.golden", plan.out)
	e.want(e.adopt("apply", "--skip-probe"), ExitUsage) // no terminal for the confirmation
	if e.queue() != "Karpenter-prod" {
		t.Fatal("the plan changed Karpenter")
	}
	done := e.adopt("apply", "--skip-probe", "--yes")
	e.want(done, ExitOK)
	e.says(done, "Karpenter reads no queue, and Lifeboat handles interruptions")
	if d := e.deployment(); e.queue() != "" || d.Annotations[annotationQueue] != "Karpenter-prod" {
		t.Errorf("queue %q, annotations %v", e.queue(), d.Annotations)
	}
	again := e.adopt("apply", "--skip-probe", "--yes")
	e.want(again, ExitOK)
	e.says(again, "No changes are needed")
	e.want(e.adopt("plan"), ExitOK)

	back := e.adopt("plan", "--undo")
	e.want(back, ExitChanges)
	golden(t, "adopt-plan-undo.golden", back.out)
	undone := e.adopt("undo", "--yes", "-o", "json")
	e.want(undone, ExitOK)
	var report adoptionReport
	if err := json.Unmarshal([]byte(undone.out), &report); err != nil || report.Applied == nil || !*report.Applied || !report.Undo {
		t.Errorf("%v: %s", err, undone.out)
	}
	if d := e.deployment(); e.queue() != "Karpenter-prod" || d.Annotations[annotationQueue] != "" {
		t.Errorf("queue %q, annotations %v", e.queue(), d.Annotations)
	}
	e.want(e.adopt("plan", "--undo"), ExitOK)
}

func TestAdoptKarpenterOfHelm(t *testing.T) {
	e := newCutOver(t)
	d := e.deployment()
	d.Annotations = map[string]string{annotationRelease: "karpenter"}
	if err := e.cluster.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	plan := e.adopt("plan")
	e.want(plan, ExitChanges)
	golden(t, "adopt-plan-helm.golden", plan.out)
	terraform := e.adopt("plan", "--tool", "terraform")
	e.want(terraform, ExitChanges)
	golden(t, "adopt-plan-terraform.golden", terraform.out)

	printed := e.adopt("apply", "--skip-probe", "--yes")
	e.want(printed, ExitChanges)
	e.says(printed, "The step karpenter-queue is yours to make")
	if e.queue() != "Karpenter-prod" || len(e.helm) > 0 {
		t.Fatalf("queue %q, helm %v", e.queue(), e.helm)
	}
	e.want(e.adopt("apply", "--skip-probe", "--yes", "--run-helm"), ExitOK)
	// Without the annotation, the rules tell Karpenter's queue.
	e.want(e.adopt("undo", "--yes", "--run-helm"), ExitOK)
	want := "upgrade karpenter " + karpenterChart + " --namespace kube-system --reuse-values --version 1.14.1 --set-string settings.interruptionQueue="
	if !slices.Equal(e.helm, []string{want, want + "Karpenter-prod"}) || e.queue() != "Karpenter-prod" {
		t.Errorf("helm %q, queue %q", e.helm, e.queue())
	}
}

// No command leaves notices to no program.
func TestAdoptKarpenterRefusesGap(t *testing.T) {
	disable := func(e *cutOver) error {
		_, err := e.rules.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: aws.String("lifeboat-prod-spot-interruption")})
		return err
	}
	for name, c := range map[string]struct {
		do   func(*cutOver) error
		args []string
		says string
	}{
		"Lifeboat does not run":   {func(e *cutOver) error { e.alive = false; return nil }, []string{"apply"}, "it does not run in this sandbox"},
		"a rule is disabled":      {disable, []string{"apply"}, "rule-disabled"},
		"AWS does not answer":     {denied, []string{"apply"}, "The doctor could not check it"},
		"the queue is not read":   {func(e *cutOver) error { e.server.Gate.Deny("sqs", "*"); return nil }, []string{"apply"}, "queue"},
		"everything is paused":    {paused(v1beta1.PauseEverything), []string{"apply"}, "also of spot interruptions"},
		"mode Observe":            {observes, []string{"apply"}, "runs with mode Observe"},
		"undo without its rules":  {func(e *cutOver) error { return errors.Join(e.off(), e.withoutRule()) }, []string{"undo"}, "No rule does"},
		"undo, rules not read":    {func(e *cutOver) error { e.server.Gate.Deny("events", "*"); return e.off() }, []string{"undo"}, "The rules could not be read"},
		"undo of another cluster": {func(e *cutOver) error { return e.off() }, []string{"undo", "--queue", "other"}, "No rule does"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newCutOver(t)
			if err := c.do(e); err != nil {
				t.Fatal(err)
			}
			was := e.queue()
			args := append(slices.Clone(c.args), "--yes")
			if c.args[0] == "apply" {
				args = append(args, "--skip-probe")
			}
			r := e.adopt(args...)
			e.want(r, ExitFailed)
			e.says(r, "nothing was changed", c.says)
			if e.queue() != was {
				t.Errorf("Karpenter's queue was %q, and is %q", was, e.queue())
			}
		})
	}
}

func denied(e *cutOver) error {
	e.server.Gate.Deny("sqs", "*")
	e.server.Gate.Deny("events", "*")
	return nil
}

// off turns Karpenter's queue off.
func (e *cutOver) off() error {
	d := e.deployment()
	d.Spec.Template.Spec.Containers[0].Env[0].Value, d.Annotations = "", map[string]string{annotationQueue: "Karpenter-prod"}
	return e.cluster.Update(e.t.Context(), d)
}

func (e *cutOver) withoutRule() error {
	_, err := e.rules.RemoveTargets(e.t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String("KarpenterSpotInterrupt"), Ids: []string{"q"}})
	return err
}

func paused(scope v1beta1.PauseScope) func(*cutOver) error {
	return func(e *cutOver) error {
		return e.cluster.Create(e.t.Context(), &v1beta1.Pause{
			ObjectMeta: metav1.ObjectMeta{Name: clusterPause},
			Spec:       v1beta1.PauseSpec{By: "me", StartTime: metav1.NewTime(clock.Add(-time.Minute)), Until: metav1.NewTime(clock.Add(time.Hour)), Stops: scope},
		})
	}
}

func observes(e *cutOver) error {
	one := int32(1)
	return e.cluster.Create(e.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: lifeboatController},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Args: []string{"controller", "--mode=Observe"}},
		}}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	})
}

// If Lifeboat stops while Karpenter restarts, Karpenter gets its queue back.
func TestAdoptKarpenterGivesQueueBack(t *testing.T) {
	e := newCutOver(t)
	e.dies = true
	r := e.adopt("apply", "--skip-probe", "--yes")
	e.want(r, ExitFailed)
	e.says(r, "lifeboat stopped during the change", "Karpenter reads its queue Karpenter-prod again")
	if e.queue() != "Karpenter-prod" {
		t.Errorf("Karpenter's queue is %q, and Lifeboat does not run", e.queue())
	}
}

// Argo CD and Flux set the queue again.
func TestAdoptKarpenterWaitsForPods(t *testing.T) {
	e := newCutOver(t)
	d := e.deployment()
	d.Status.UpdatedReplicas = 0
	if err := e.cluster.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	r := e.adopt("apply", "--skip-probe", "--yes", "--timeout", "10ms")
	e.want(r, ExitFailed)
	e.says(r, "its pods do not all run with it")
	e.want(e.adopt("plan"), ExitChanges) // it continues
	d = e.deployment()
	d.Status.UpdatedReplicas = 1
	if err := e.cluster.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	e.want(e.adopt("apply", "--skip-probe", "--yes"), ExitOK)
}

func TestAdoptKarpenterWithoutDeployment(t *testing.T) {
	e := newCutOver(t)
	if err := e.cluster.Delete(t.Context(), e.karpenter); err != nil {
		t.Fatal(err)
	}
	r := e.adopt("plan")
	e.want(r, ExitFailed)
	e.says(r, "EKS Auto Mode")
}

func TestKarpentersQueueIsFound(t *testing.T) {
	env := func(v corev1.EnvVar) corev1.Container { return corev1.Container{Env: []corev1.EnvVar{v}} }
	for name, c := range map[string]struct {
		container corev1.Container
		want      adopt.Deployment
	}{
		"a variable":  {env(corev1.EnvVar{Name: queueVariable, Value: "q"}), adopt.Deployment{Queue: "q"}},
		"none":        {corev1.Container{}, adopt.Deployment{}},
		"an argument": {corev1.Container{Args: []string{queueFlag + "=q"}}, adopt.Deployment{Queue: "q", Elsewhere: "the argument " + queueFlag}},
		"a reference": {
			env(corev1.EnvVar{Name: queueVariable, ValueFrom: &corev1.EnvVarSource{}}),
			adopt.Deployment{Queue: "(unknown)", Elsewhere: "a reference (valueFrom) of the variable " + queueVariable},
		},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{c.container}
		if got := describeKarpenter(d); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
