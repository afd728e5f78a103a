package hooks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

func subject() hooks.Subject {
	deadline := time.Date(2026, 3, 1, 8, 17, 0, 0, time.UTC)
	return hooks.Subject{
		Interruption: "i-0abc", UID: "uid-1", Node: "node-a", InstanceID: "i-0abc", Kind: "SpotInterruption", Policy: "kafka",
		Phase: v1beta1.PhaseCordoned, Reason: "Drain", Message: "the spot instance is reclaimed", Deadline: &deadline,
		Pods: v1beta1.PodCounts{Total: 12},
	}
}

const smallest = `{spec: {template: {spec: {containers: [{name: main, image: tool:1}]}}}}`

func jobHook(t *testing.T, template string) v1beta1.Hook {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	return v1beta1.Hook{Name: "move-leaders", When: v1beta1.HookBeforeDrain, Job: &v1beta1.HookJob{Template: runtime.RawExtension{Raw: raw}}}
}

func job(t *testing.T, h v1beta1.Hook, s hooks.Subject, try int32) *batchv1.Job {
	t.Helper()
	j, err := hooks.Job(h, s, try, "lifeboat-system")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJobDefaultsMissingFields(t *testing.T) {
	h := jobHook(t, smallest)
	h.Timeout = &metav1.Duration{Duration: 90500 * time.Millisecond}
	got := job(t, h, subject(), 2)
	want := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: got.Name, Namespace: "lifeboat-system",
			Labels:      map[string]string{"lifeboat.dev/interruption": "i-0abc"},
			Annotations: map[string]string{"lifeboat.dev/interruption-uid": "uid-1"},
		},
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: new(int64(91)), BackoffLimit: new(int32(0)), TTLSecondsAfterFinished: new(int32(3600)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "tool:1", Env: []corev1.EnvVar{
					{Name: "LIFEBOAT_NODE", Value: "node-a"},
					{Name: "LIFEBOAT_INSTANCE_ID", Value: "i-0abc"},
					{Name: "LIFEBOAT_KIND", Value: "SpotInterruption"},
					{Name: "LIFEBOAT_REASON", Value: "Drain"},
					{Name: "LIFEBOAT_DEADLINE", Value: "2026-03-01T08:17:00Z"},
					{Name: "LIFEBOAT_POLICY", Value: "kafka"},
					{Name: "LIFEBOAT_HOOK", Value: "move-leaders"},
					{Name: "LIFEBOAT_TRY", Value: "2"},
				}}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJobKeepsTemplateFields(t *testing.T) {
	h := jobHook(t, `
metadata:
  creationTimestamp: null
  labels: {team: kafka, lifeboat.dev/interruption: mine}
  annotations: {why: because}
spec:
  activeDeadlineSeconds: 20
  backoffLimit: 3
  ttlSecondsAfterFinished: 120
  template:
    spec:
      restartPolicy: OnFailure
      initContainers: [{name: first, image: tool:1}]
      containers: [{name: main, image: tool:1, env: [{name: LIFEBOAT_NODE, value: mine}, {name: HERE, value: $(LIFEBOAT_KIND)}]}]
`)
	s := subject()
	s.Deadline, s.Reason = nil, "costs $(HOME)"
	got := job(t, h, s, 1)
	if diff := cmp.Diff(map[string]string{"team": "kafka", "lifeboat.dev/interruption": "i-0abc"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"why": "because", "lifeboat.dev/interruption-uid": "uid-1"}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got)\n%s", diff)
	}
	if *got.Spec.ActiveDeadlineSeconds != 20 || *got.Spec.BackoffLimit != 3 || *got.Spec.TTLSecondsAfterFinished != 120 || got.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		t.Errorf("the template's own were overwritten: %+v", got.Spec)
	}
	env := map[string]string{}
	var names []string
	for _, v := range got.Spec.Template.Spec.Containers[0].Env {
		env[v.Name] = v.Value
		names = append(names, v.Name)
	}
	if env["LIFEBOAT_NODE"] != "mine" || env["LIFEBOAT_DEADLINE"] != "" || env["LIFEBOAT_REASON"] != "costs $$(HOME)" {
		t.Errorf("environment %v", env)
	}
	if last := names[len(names)-1]; last != "HERE" || len(names) != 9 {
		t.Errorf("a container's own variables come last, so that they may refer to Lifeboat's, and each name once: %v", names)
	}
	if len(got.Spec.Template.Spec.InitContainers[0].Env) != 8 {
		t.Error("an init container was not told")
	}
}

func TestJobNames(t *testing.T) {
	h := jobHook(t, smallest)
	h.Name = strings.Repeat("n", 30)
	again := subject()
	again.Since = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	other := subject()
	other.UID = "uid-2"
	otherHook := h
	otherHook.Name = strings.Repeat("m", 30)
	seen := map[string]bool{}
	for _, c := range []struct {
		h   v1beta1.Hook
		s   hooks.Subject
		try int32
	}{{h, subject(), 1}, {h, subject(), 2}, {h, again, 1}, {h, other, 1}, {otherHook, subject(), 1}} {
		name := job(t, c.h, c.s, c.try).Name
		if name != job(t, c.h, c.s, c.try).Name || seen[name] {
			t.Errorf("%s is not the same every time, or not only for this try", name)
		}
		seen[name] = true
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > 50 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestJobRejectsInvalidTemplate(t *testing.T) {
	const write = ": write metadata (labels, annotations) and spec, as in a CronJob's jobTemplate"
	for _, c := range []struct{ name, template, want string }{
		{"misspelt", `{spec: {template: {spec: {container: []}}, backofflimit: 1}}`,
			`the template has fields that are not allowed: unknown field "spec.backofflimit"; unknown field "spec.template.spec.container"` + write},
		{"a whole manifest", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {}}`,
			`the template has fields that are not allowed: unknown field "apiVersion"; unknown field "kind"; metadata.name is not allowed in a template` + write},
		{"another namespace", `{metadata: {namespace: kube-system}}`, `the template has fields that are not allowed: metadata.namespace is not allowed in a template` + write},
		{"a wrong type", `{spec: {backoffLimit: often}}`, `the template is not a Job template: json: cannot unmarshal string into Go struct field JobSpec.spec.backoffLimit of type int32` + write},
		{"a list", `[]`, `the template is not a Job template: json: cannot unmarshal array into Go value of type v1.JobTemplateSpec` + write},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := hooks.Job(jobHook(t, c.template), subject(), 1, "x")
			if fmt.Sprint(err) != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	h := jobHook(t, smallest)
	h.Job.Template.Raw = nil
	if _, err := hooks.Job(h, subject(), 1, "x"); err == nil {
		t.Error("an empty template is taken")
	}
	h.Job = nil
	if _, err := hooks.Job(h, subject(), 1, "x"); err == nil {
		t.Error("a hook without job is taken")
	}
}

func TestOutcome(t *testing.T) {
	condition := func(typ batchv1.JobConditionType, reason, message string) batchv1.JobStatus {
		return batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse},
			{Type: typ, Status: corev1.ConditionTrue, Reason: reason, Message: message},
		}}
	}
	const logs = "; see `kubectl -n ns logs job/j`"
	for _, c := range []struct {
		name    string
		status  batchv1.JobStatus
		backoff int32
		state   v1beta1.HookState
		message string
	}{
		{"new", batchv1.JobStatus{}, 0, v1beta1.HookRunning, "Job ns/j was created; it has no pod yet"},
		{"pulling its image", batchv1.JobStatus{Active: 1, Ready: new(int32(0))}, 0, v1beta1.HookRunning, "Job ns/j was created; its pod is not ready yet"},
		{"running", batchv1.JobStatus{Active: 1, Ready: new(int32(1))}, 0, v1beta1.HookRunning, "Job ns/j runs"},
		{"a condition that is not true", batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}}}, 0, v1beta1.HookRunning, "Job ns/j was created; it has no pod yet"},
		{"complete", condition(batchv1.JobComplete, "", ""), 0, v1beta1.HookSucceeded, "Job ns/j completed"},
		{"about to be complete", condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached", ""), 0, v1beta1.HookSucceeded, "Job ns/j completed"},
		{"too late", condition(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline"), 0, v1beta1.HookFailed, "Job ns/j did not finish within 60s" + logs},
		{"about to be too late", condition(batchv1.JobFailureTarget, "DeadlineExceeded", ""), 0, v1beta1.HookFailed, "Job ns/j did not finish within 60s" + logs},
		{"one pod failed", condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"), 0, v1beta1.HookFailed, "Job ns/j failed: its pod failed" + logs},
		{"pods failed", condition(batchv1.JobFailed, "BackoffLimitExceeded", ""), 2, v1beta1.HookFailed, "Job ns/j failed: its pods failed more than 2 times" + logs},
		{"anything else", condition(batchv1.JobFailed, "PodFailurePolicy", "container main exited with 42"), 0, v1beta1.HookFailed, "Job ns/j failed: PodFailurePolicy: container main exited with 42" + logs},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"}, Status: c.status}
			j.Spec.ActiveDeadlineSeconds, j.Spec.BackoffLimit = new(int64(60)), &c.backoff
			state, message := hooks.Outcome(j)
			if state != c.state || message != c.message {
				t.Errorf("got  %s: %s\nwant %s: %s", state, message, c.state, c.message)
			}
		})
	}
}

func FuzzJob(f *testing.F) {
	f.Add(`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}}`)
	f.Add(`{"metadata":{"labels":{"a":"b"}},"spec":null}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, template string) {
		h := v1beta1.Hook{Name: "fuzz", When: v1beta1.HookBeforeDrain, Job: &v1beta1.HookJob{Template: runtime.RawExtension{Raw: []byte(template)}}}
		j, err := hooks.Job(h, subject(), 1, "ns")
		if err != nil {
			if len(hooks.Check(h)) == 0 {
				t.Fatalf("Check finds nothing wrong with what fails: %v", err)
			}
			return
		}
		if j.Labels[v1beta1.LabelInterruption] != "i-0abc" || j.Spec.BackoffLimit == nil || *j.Spec.ActiveDeadlineSeconds > 60 {
			t.Fatalf("incomplete: %+v", j)
		}
		if _, err := json.Marshal(j); err != nil {
			t.Fatal(err)
		}
	})
}
