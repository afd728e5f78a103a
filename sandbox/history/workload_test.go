package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// TestRandomWorkloadsAreOrdinary reads the workloads of many histories as their types, strictly, and
// counts what an ordinary cluster has.
func TestRandomWorkloadsAreOrdinary(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(300) {
		for _, w := range Random(seed).Workloads {
			for _, o := range objects(t, w.yaml()) {
				count(t, seen, w, o)
			}
		}
	}
	for _, what := range []string{
		"budget maxUnavailable: 1", "budget minAvailable", "no budget", "StatefulSet with a volume", "PersistentVolume", "DaemonSet", "Job", "Indexed Job", "Pod", "shared",
	} {
		if seen[what] < 20 {
			t.Errorf("%s: %d in all histories: %v", what, seen[what], seen)
		}
	}
}

func count(t *testing.T, seen map[string]int, w Workload, o runtime.Object) {
	t.Helper()
	switch o := o.(type) {
	case *appsv1.Deployment:
		if *o.Spec.Replicas > 1 && w.Budget == "" {
			seen["no budget"]++
		}
		if w.Shares {
			seen["shared"]++
		}
		ordinary(t, w)
	case *policyv1.PodDisruptionBudget:
		if o.Spec.MinAvailable != nil {
			seen["budget minAvailable"]++
		} else if o.Spec.MaxUnavailable.IntValue() == 1 {
			seen["budget maxUnavailable: 1"]++
		}
	case *appsv1.StatefulSet:
		if len(o.Spec.VolumeClaimTemplates) > 0 {
			seen["StatefulSet with a volume"]++
		}
	case *appsv1.DaemonSet:
		seen["DaemonSet"]++
		if len(o.Spec.Template.Spec.Tolerations) > 0 {
			t.Errorf("the DaemonSet tolerates %v", o.Spec.Template.Spec.Tolerations)
		}
	case *batchv1.Job:
		seen["Job"]++
		if o.Spec.CompletionMode != nil {
			seen["Indexed Job"]++
		}
	case *corev1.PersistentVolume:
		seen["PersistentVolume"]++
	case *corev1.Pod:
		seen["Pod"]++
	}
}

// ordinary checks the times of a workload.
func ordinary(t *testing.T, w Workload) {
	t.Helper()
	if w.Start < 5 || w.Start > 20 || w.Stop < 5 || w.Stop > 40 || w.Stop > w.Grace {
		t.Errorf("%s starts in %d s and stops in %d s of %d s", w.Name, w.Start, w.Stop, w.Grace)
	}
}

// objects reads objects as the API server does.
func objects(t *testing.T, text string) (all []runtime.Object) {
	t.Helper()
	types := map[string]func() runtime.Object{
		"Deployment": func() runtime.Object { return &appsv1.Deployment{} }, "StatefulSet": func() runtime.Object { return &appsv1.StatefulSet{} },
		"DaemonSet": func() runtime.Object { return &appsv1.DaemonSet{} }, "Job": func() runtime.Object { return &batchv1.Job{} },
		"Pod": func() runtime.Object { return &corev1.Pod{} }, "PersistentVolume": func() runtime.Object { return &corev1.PersistentVolume{} },
		"PodDisruptionBudget": func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
	}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Kind string }
		if err := yaml.Unmarshal(doc, &head); err != nil || types[head.Kind] == nil {
			t.Fatalf("kind %q: %v\n%s", head.Kind, err, doc)
		}
		o := types[head.Kind]()
		if err := yaml.UnmarshalStrict(bytes.TrimSpace(doc), o); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		all = append(all, o)
	}
}
