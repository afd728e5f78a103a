package hook

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
	"sigs.k8s.io/json"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// AnnotationUID on a Job is the UID of the record that it is a hook of.
const AnnotationUID = "lifeboat.dev/interruption-uid"

// keptFor is how long a Job that has ended is kept, in seconds, where its
// template does not say.
const keptFor = 3600

// Job returns the Job of a try of the hook. Its name is the same for the same
// record, hook and try. The hook's namespace goes before the one given. It
// fails where the template is no Job's.
func Job(h v1alpha1.Hook, s Subject, try int32, namespace string) (*batchv1.Job, error) {
	if h.Job == nil {
		return nil, errors.New("the hook is no job")
	}
	template, err := decode(h.Job.Template.Raw)
	if err != nil {
		return nil, err
	}
	if h.Job.Namespace != "" {
		namespace = h.Job.Namespace
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: JobName(h, s, try), Namespace: namespace,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataLabel(&job.ObjectMeta, v1alpha1.LabelInterruption, s.Interruption)
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, AnnotationUID, string(s.UID))
	complete(&job.Spec, Timeout(h))
	env := environment(h, s, try)
	pod := &job.Spec.Template.Spec
	for i := range pod.InitContainers {
		tell(&pod.InitContainers[i], env)
	}
	for i := range pod.Containers {
		tell(&pod.Containers[i], env)
	}
	return job, nil
}

// JobName is the name of the Job of a try: at most 50 characters.
func JobName(h v1alpha1.Hook, s Subject, try int32) string {
	return fmt.Sprintf("lifeboat-%s-%s", h.Name, s.TryKey(h.Name, try)[:10])
}

// decode reads a template. What does not belong in it is an error: it would be
// ignored in silence.
func decode(raw []byte) (*batchv1.JobTemplateSpec, error) {
	const write = "write metadata (labels, annotations) and spec, as in a CronJob's jobTemplate"
	if len(raw) == 0 {
		return nil, errors.New("the template is empty: " + write)
	}
	var template batchv1.JobTemplateSpec
	strict, err := json.UnmarshalStrict(raw, &template)
	if err != nil {
		return nil, fmt.Errorf("the template is no Job's: %w: %s", err, write)
	}
	var unknown []string
	for _, e := range strict {
		unknown = append(unknown, e.Error())
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
			unknown = append(unknown, fmt.Sprintf("metadata.%s is not for a template to say", field.name))
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("the template has what does not belong in it: %s: %s", strings.Join(unknown, "; "), write)
	}
	return &template, nil
}

// complete fills in what the template leaves open. A try never takes longer
// than the hook's timeout, whatever the template says.
func complete(spec *batchv1.JobSpec, timeout time.Duration) {
	limit := int64(math.Ceil(timeout.Seconds()))
	if spec.ActiveDeadlineSeconds == nil || *spec.ActiveDeadlineSeconds > limit {
		spec.ActiveDeadlineSeconds = &limit
	}
	if spec.BackoffLimit == nil {
		spec.BackoffLimit = new(int32)
	}
	if spec.TTLSecondsAfterFinished == nil {
		kept := int32(keptFor)
		spec.TTLSecondsAfterFinished = &kept
	}
	if spec.Template.Spec.RestartPolicy == "" {
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// environment is what the containers of a Job are told.
func environment(h v1alpha1.Hook, s Subject, try int32) []corev1.EnvVar {
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
		// The kubelet expands $(NAME), and takes $$( for $(.
		env[i].Value = strings.ReplaceAll(env[i].Value, "$(", "$$(")
	}
	return env
}

// tell gives a container the environment. Its own variables come last: those
// of the same name win, and the others may refer to Lifeboat's as $(NAME).
func tell(c *corev1.Container, env []corev1.EnvVar) {
	all := slices.DeleteFunc(slices.Clone(env), func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(c.Env, func(own corev1.EnvVar) bool { return own.Name == v.Name })
	})
	c.Env = append(all, c.Env...)
}
