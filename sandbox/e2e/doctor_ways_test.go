//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// way is one way to break a working installation.
type way struct {
	name string
	do   func(*patient)
	// want is the id of the finding. What it prints repairs the installation.
	want string
}

func clusterWays() []way {
	named := func(o client.Object, name string) client.Object { o.SetName(name); return o }
	own := func(o client.Object, name string) client.Object {
		o.SetName(name)
		o.SetNamespace(chart.Namespace)
		return o
	}
	gone := func(objects ...client.Object) func(*patient) {
		return func(p *patient) {
			for _, o := range objects {
				p.must(p.client.Delete(p.t.Context(), o))
			}
		}
	}
	patched := func(o client.Object, patch string) func(*patient) {
		return func(p *patient) {
			p.must(p.client.Patch(p.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))))
		}
	}
	made := func(objects ...client.Object) func(*patient) { return func(p *patient) { p.apply(objects...) } }
	const controller, agent = chart.ControllerAccount, chart.AgentAccount
	return []way{
		{"the controller's policy is gone", gone(named(&admissionv1.ValidatingAdmissionPolicy{}, controller)), "admission-policy-missing"},
		{"the policy of people is gone", gone(named(&admissionv1.ValidatingAdmissionPolicy{}, "lifeboat-interruptions")), "admission-policy-missing"},
		{"a policy lets failures pass", patched(named(&admissionv1.ValidatingAdmissionPolicy{}, agent), `{"spec":{"failurePolicy":"Ignore"}}`), "admission-policy-changed"},
		{"a binding is gone", gone(named(&admissionv1.ValidatingAdmissionPolicyBinding{}, controller)), "admission-policy-unbound"},
		{"a binding only audits", patched(named(&admissionv1.ValidatingAdmissionPolicyBinding{}, agent), `{"spec":{"validationActions":["Audit"]}}`), "admission-policy-unbound"},
		{"a FlowSchema is gone", gone(named(&flowcontrolv1.FlowSchema{}, controller)), "flow-schema-missing"},
		{"a CRD is old", oldCRD, "crd-old"},
		{"a CRD is gone", gone(crd("nodegroups")), "crd-old"},
		{"a permission is gone", func(p *patient) { p.deny("nodes", "patch") }, "role-incomplete"},
		{"a policy waits for load balancers without the permission", made(&v1beta1.InterruptionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "balanced"},
			Spec: v1beta1.InterruptionPolicySpec{
				WaitForDeregistration: &metav1.Duration{Duration: time.Minute},
				Rules:                 []v1beta1.Rule{{Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain}},
			},
		}), "role-incomplete"},
		{"the binding of the role is gone", gone(named(&rbacv1.ClusterRoleBinding{}, controller)), "role-incomplete"},
		{"the binding in the namespace is gone", gone(own(&rbacv1.RoleBinding{}, controller)), "role-incomplete"},
		{"the Deployment is gone", gone(own(&appsv1.Deployment{}, controller), own(&coordinationv1.Lease{}, controller)), "lifeboat-missing"},
		{"Lifeboat is not installed", func(p *patient) {
			p.shell("helm uninstall lifeboat --namespace lifeboat-system --wait")
			gone(own(&coordinationv1.Lease{}, controller))(p)
		}, "lifeboat-missing"},
		{"the controller is scaled to 0", patched(own(&appsv1.Deployment{}, controller), `{"spec":{"replicas":0}}`), "lifeboat-not-ready"},
		{"the controller reads another queue", func(p *patient) {
			p.argument("--queue-url=", "--queue-url=https://sqs.us-east-1.amazonaws.com/123456789012/other")
		}, "lifeboat-other-queue"},
		{"the agents are older", patched(own(&appsv1.DaemonSet{}, agent), `{"metadata":{"labels":{"app.kubernetes.io/version":"0.0.1"}}}`), "lifeboat-versions"},
		{"there are no agents", gone(own(&appsv1.DaemonSet{}, agent)), "agents-missing"},
		{"Karpenter reads the queue", func(p *patient) { p.apply(karpenterOn(p.Wiring().Queue.Name)) }, "karpenter-same-queue"},
		{"NTH reads the queue", func(p *patient) {
			p.apply(otherTool("aws-node-termination-handler", "QUEUE_URL", p.State().QueueURL))
		}, "nth-same-queue"},
		{"a second Lifeboat runs", func(p *patient) { p.apply(secondLifeboat(p.State().QueueURL)) }, "lifeboat-twice"},
		{"a budget allows nothing", made(pdbOf("never", "web", 0)), "budget-never-allows"},
		{"two budgets cover a pod", made(pdbOf("first", "web", 1), pdbOf("second", "web", 1)), "budgets-overlap"},
		{"pods need ten minutes to stop", patched(webDeployment(), `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":600}}}}`), "grace-exceeds-notice"},
		{"there is one replica", patched(webDeployment(), `{"spec":{"replicas":1}}`), "single-replica"},
		{"two policies have one priority", made(policyNamed("first"), policyNamed("second")), "policies-tied"},
	}
}

func cloudWays() []way {
	pattern := func(text string) func(*patient) {
		return func(p *patient) {
			name := p.spotRule()
			_, err := p.events.PutRule(p.t.Context(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &text})
			p.must(err)
		}
	}
	queue := func(attribute, value string) func(*patient) {
		return func(p *patient) {
			url := p.State().QueueURL
			value := strings.ReplaceAll(value, "QUEUE", p.Wiring().QueueARN())
			_, err := p.sqs.SetQueueAttributes(p.t.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{attribute: value}})
			p.must(err)
		}
	}
	const allow = `{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"QUEUE"`
	return []way{
		{"the rule is misspelt", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`), "rule-matches-nothing"},
		{"a key is in camel case", pattern(`{"source":["aws.ec2"],"detailType":["EC2 Spot Instance Interruption Warning"]}`), "rule-matches-nothing"},
		{"the rule is disabled", func(p *patient) {
			name := p.spotRule()
			_, err := p.events.DisableRule(p.t.Context(), &eventbridge.DisableRuleInput{Name: &name})
			p.must(err)
		}, "rule-disabled"},
		{"the rule is gone", func(p *patient) {
			name := p.spotRule()
			p.target(func(t ebtypes.Target) {
				_, err := p.events.RemoveTargets(p.t.Context(), &eventbridge.RemoveTargetsInput{Rule: &name, Ids: []string{*t.Id}})
				p.must(err)
			})
			_, err := p.events.DeleteRule(p.t.Context(), &eventbridge.DeleteRuleInput{Name: &name})
			p.must(err)
		}, "kind-uncovered"},
		{"the target is another queue", func(p *patient) {
			p.retarget(func(t *ebtypes.Target) {
				other := strings.TrimSuffix(*t.Arn, p.Wiring().Queue.Name) + "other"
				t.Arn = &other
			})
		}, "rule-wrong-target"},
		{"the target cuts the event", func(p *patient) {
			p.retarget(func(t *ebtypes.Target) { path := "$.detail"; t.InputPath = &path })
		}, "target-input-changed"},
		{"the policy denies no sender", func(p *patient) {
			attributes, err := p.Wiring().QueueAttributes()
			p.must(err)
			allowed, _, _ := strings.Cut(attributes["Policy"], `,{"Sid":"DenyPlainHTTP"`)
			queue("Policy", allowed+"]}")(p)
		}, "queue-policy-undenied"},
		{"the queue has no policy", queue("Policy", ""), "queue-policy-refuses"},
		{"the policy is for another rule", queue("Policy", `{"Version":"2012-10-17","Statement":[`+allow+`,"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:us-east-1:123456789012:rule/another"}}}]}`), "queue-policy-refuses"},
		{"the policy denies", queue("Policy", `{"Version":"2012-10-17","Statement":[`+allow+`},{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":"QUEUE"}]}`), "queue-policy-refuses"},
		{"there is no dead-letter queue", queue("RedrivePolicy", ""), "dead-letter-missing"},
		{"the queue has AWS's key", queue("KmsMasterKeyId", "alias/aws/sqs"), "queue-encryption-aws-key"},
		{"the queue has a key of its own", queue("KmsMasterKeyId", "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"), "queue-encryption-key-policy"},
		{"messages expire in five minutes", queue("MessageRetentionPeriod", "300"), "queue-retention-short"},
		{"messages stay hidden", queue("VisibilityTimeout", "600"), "queue-visibility-long"},
		{"a terminate hook is gone", func(p *patient) {
			p.must(p.AWS().States.AutoScaling.DeleteHook(workers, v1beta1.TerminateHook))
		}, "terminate-hook-missing"},
	}
}

// Each way to break the installation is found, and what the doctor prints repairs it.
func TestDoctorRepairsWhatIsBroken(t *testing.T) {
	args, log := auditArgs(t, doctorAudit)
	p := newPatient(t, sandbox.Options{APIServerArgs: args})
	well := p.findings()
	for _, f := range well {
		t.Logf("when all is well: %s %s of %s: %s", f.Severity, f.ID, f.Object, f.Problem)
		if f.Severity != "info" {
			t.Fatal("the installation is not well to begin with")
		}
	}
	ways := append(cloudWays(), clusterWays()...)
	if len(ways) < 30 {
		t.Fatalf("%d ways", len(ways))
	}
	for _, w := range ways {
		ok := t.Run(w.name, func(t *testing.T) {
			q := p.of(t)
			q.heal(w, well)
		})
		if !ok {
			return // the next ones would find this one too
		}
	}
	t.Run("the controller's role lacks an action", func(t *testing.T) { p.of(t).roleLacksAction(t) })
	t.Run("users lack one permission", func(t *testing.T) { p.of(t).withoutOnePermission(log) })
}

// heal breaks the installation, and follows what the doctor prints.
func (p *patient) heal(w way, well []reported) {
	p.t.Helper()
	w.do(p)
	var found []reported
	p.until("the finding "+w.want, 20*time.Second, func(context.Context) (bool, error) {
		found = beyond(p.findings(), well)
		return has(found, w.want), nil
	})
	for _, f := range found {
		if f.ID == w.want {
			p.perform(f.Fix)
			break
		}
	}
	// Pods become ready, and a new admission policy is in force a second later. A second
	// problem behind the first one is repaired as well.
	tried := 0
	p.until("the installation to be well after the fix", 30*time.Second, func(context.Context) (bool, error) {
		found = beyond(p.findings(), well)
		if tried++; len(found) > 0 && tried == 10 {
			p.perform(found[0].Fix)
		}
		return len(found) == 0, errFound(found)
	})
}

func crd(plural string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	o.SetName(plural + ".lifeboat.dev")
	return o
}

// oldCRD removes a field that this version added.
func oldCRD(p *patient) {
	o := crd("interruptions")
	p.must(p.client.Get(p.t.Context(), client.ObjectKeyFromObject(o), o))
	versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
	p.must(err)
	unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "hold")
	p.must(unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"))
	p.must(p.client.Update(p.t.Context(), o))
}

// deny removes a permission of the controller.
func (p *patient) deny(resource, verb string) {
	role := &rbacv1.ClusterRole{}
	p.must(p.client.Get(p.t.Context(), client.ObjectKey{Name: chart.ControllerAccount}, role))
	for i, r := range role.Rules {
		if slices.Contains(r.Resources, resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(r.Verbs, func(v string) bool { return v == verb })
		}
	}
	p.must(p.client.Update(p.t.Context(), role))
}

// argument replaces an argument of the controller.
func (p *patient) argument(prefix, with string) {
	d := &appsv1.Deployment{}
	p.must(p.client.Get(p.t.Context(), client.ObjectKey{Namespace: chart.Namespace, Name: chart.ControllerAccount}, d))
	for i, a := range d.Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(a, prefix) {
			d.Spec.Template.Spec.Containers[0].Args[i] = with
		}
	}
	p.must(p.client.Update(p.t.Context(), d))
}

// otherTool is a Deployment of another tool in kube-system.
func otherTool(name, variable, value string) *appsv1.Deployment {
	one, labels := int32(1), map[string]string{"app.kubernetes.io/name": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c", Env: []corev1.EnvVar{{Name: variable, Value: value}}}}},
			},
		},
	}
}

// secondLifeboat is the controller of another release.
func secondLifeboat(queueURL string) *appsv1.Deployment {
	d := otherTool("lifeboat", "", "")
	d.Name, d.Labels["app.kubernetes.io/component"] = "second-lifeboat-controller", "controller"
	c := &d.Spec.Template.Spec.Containers[0]
	c.Env, c.Args = nil, []string{"controller", "--queue-url=" + queueURL}
	return d
}

// karpenterOn is a Karpenter that does not poll yet.
func karpenterOn(queue string) *appsv1.Deployment {
	d := otherTool("karpenter", "INTERRUPTION_QUEUE", queue)
	d.Labels["app.kubernetes.io/version"] = "1.11.0"
	return d
}

func pdbOf(name, app string, unavailable int) *policyv1.PodDisruptionBudget {
	most := intstr.FromInt(unavailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

func policyNamed(name string) *v1beta1.InterruptionPolicy {
	return &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.InterruptionPolicySpec{
		Rules: []v1beta1.Rule{{Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain}},
	}}
}
