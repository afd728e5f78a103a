package hooks

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// AnnotationUID on a Job is the UID of its Interruption.
const AnnotationUID = "lifeboat.dev/interruption-uid"

// defaultTTL is the default ttlSecondsAfterFinished of a hook Job.
const defaultTTL = 3600

// Job returns the Job of a try of the hook. The same record, hook and try give
// the same name. It fails if the template is not a Job template, or if its pod
// would run as one of Lifeboat's ServiceAccounts.
func Job(h v1beta1.Hook, s Subject, try int32, namespace string) (*batchv1.Job, error) {
	if h.Job == nil {
		return nil, errors.New("the hook is not a job")
	}
	template, err := decode(h.Job.Template.Raw)
	if err != nil {
		return nil, err
	}
	if account := ownAccount(&template.Spec.Template.Spec); account != "" {
		return nil, errors.New(explainAccount(account))
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: JobName(h, s, try), Namespace: namespace,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataLabel(&job.ObjectMeta, v1beta1.LabelInterruption, s.Interruption)
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, AnnotationUID, string(s.UID))
	complete(&job.Spec, Timeout(h))
	env := environment(h, s, try)
	pod := &job.Spec.Template.Spec
	for i := range pod.InitContainers {
		addEnv(&pod.InitContainers[i], env)
	}
	for i := range pod.Containers {
		addEnv(&pod.Containers[i], env)
	}
	return job, nil
}

// JobName is the name of a try's Job: at most 50 characters.
func JobName(h v1beta1.Hook, s Subject, try int32) string {
	return fmt.Sprintf("lifeboat-%s-%s", h.Name, s.TryKey(h.Name, try)[:10])
}

// decode parses a template. Unknown fields are an error: they would be ignored
// silently.
func decode(raw []byte) (*batchv1.JobTemplateSpec, error) {
	const write = "write metadata (labels, annotations) and spec, as in a CronJob's jobTemplate"
	if len(raw) == 0 {
		return nil, errors.New("the template is empty: " + write)
	}
	var template batchv1.JobTemplateSpec
	if err := json.Unmarshal(raw, &template); err != nil {
		return nil, fmt.Errorf("the template is not a Job template: %w: %s", err, write)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("the template is not an object: %w: %s", err, write)
	}
	var unknown []string
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &batchv1.JobTemplateSpec{}, true)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
	} else if err != nil {
		return nil, fmt.Errorf("the template is not a Job template: %w: %s", err, write)
	}
	m := &template.ObjectMeta
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""},
		{"finalizers", len(m.Finalizers) > 0}, {"ownerReferences", len(m.OwnerReferences) > 0},
	} {
		if field.set {
			unknown = append(unknown, fmt.Sprintf("metadata.%s is not allowed in a template", field.name))
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("the template has fields that are not allowed: %s: %s", strings.Join(unknown, "; "), write)
	}
	return &template, nil
}

// complete sets defaults. The hook's timeout always bounds
// activeDeadlineSeconds.
func complete(spec *batchv1.JobSpec, timeout time.Duration) {
	limit := int64(math.Ceil(timeout.Seconds()))
	if spec.ActiveDeadlineSeconds == nil || *spec.ActiveDeadlineSeconds > limit {
		spec.ActiveDeadlineSeconds = &limit
	}
	if spec.BackoffLimit == nil {
		spec.BackoffLimit = new(int32)
	}
	if spec.TTLSecondsAfterFinished == nil {
		kept := int32(defaultTTL)
		spec.TTLSecondsAfterFinished = &kept
	}
	if spec.Template.Spec.RestartPolicy == "" {
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// environment are the variables that the containers of a Job get.
func environment(h v1beta1.Hook, s Subject, try int32) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "LIFEBOAT_NODE", Value: s.Node},
		{Name: "LIFEBOAT_INSTANCE_ID", Value: s.InstanceID},
		{Name: "LIFEBOAT_KIND", Value: s.Kind},
		{Name: "LIFEBOAT_REASON", Value: s.Reason},
		{Name: "LIFEBOAT_DEADLINE", Value: s.deadline()},
		{Name: "LIFEBOAT_POLICY", Value: s.Policy},
		{Name: "LIFEBOAT_HOOK", Value: h.Name},
		{Name: "LIFEBOAT_TRY", Value: strconv.Itoa(int(try))},
	}
	for i := range env {
		// The kubelet expands $(NAME); $$( escapes $(.
		env[i].Value = strings.ReplaceAll(env[i].Value, "$(", "$$(")
	}
	return env
}

// addEnv adds the variables to a container. The container's own variables come
// last: on a name conflict they win, and they may refer to Lifeboat's as
// $(NAME).
func addEnv(c *corev1.Container, env []corev1.EnvVar) {
	all := slices.DeleteFunc(slices.Clone(env), func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(c.Env, func(own corev1.EnvVar) bool { return own.Name == v.Name })
	})
	c.Env = append(all, c.Env...)
}
