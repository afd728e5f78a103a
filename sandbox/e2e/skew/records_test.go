//go:build skew

package skew

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// storedVersion is the version that both releases serve, and in which objects are stored.
const storedVersion = "v1beta1"

// kinds are the kinds of the API.
var kinds = []string{"Interruption", "InterruptionPolicy", "NodeGroup", "NodeNotice", "Pause"}

// records reads all Interruptions, by instance.
func (w *world) records(ctx context.Context) (map[string]v1beta1.Interruption, error) {
	objects, err := w.objects(ctx, storedVersion, "Interruption")
	if err != nil {
		return nil, err
	}
	out := map[string]v1beta1.Interruption{}
	for name, o := range objects {
		in := v1beta1.Interruption{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &in); err != nil {
			return nil, fmt.Errorf("reading Interruption %s: %w", name, err)
		}
		out[name] = in
	}
	return out, nil
}

func (w *world) mustRecords() map[string]v1beta1.Interruption {
	w.t.Helper()
	all, err := w.records(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// eachIs waits until the Interruption of each instance fulfils a condition.
func (w *world) eachIs(instances []ec2.Instance, what string, is func(v1beta1.InterruptionStatus) bool) {
	w.t.Helper()
	w.until("interruptions to "+what, 2*time.Minute, func(ctx context.Context) (bool, error) {
		all, err := w.records(ctx)
		if err != nil {
			return false, err
		}
		for _, in := range instances {
			r, ok := all[in.ID]
			if !ok || !is(r.Status) {
				return false, fmt.Errorf("%s has one: %t, %s", in.ID, ok, r.Status.Phase)
			}
		}
		return true, nil
	})
}

func (w *world) inPhase(instances []ec2.Instance, phase v1beta1.Phase) {
	w.t.Helper()
	w.eachIs(instances, "be "+string(phase), func(s v1beta1.InterruptionStatus) bool { return s.Phase == phase })
}

// waitsForReplacement reports whether a replacement is wanted and not there.
func waitsForReplacement(s v1beta1.InterruptionStatus) bool {
	return s.Drain != nil && s.Drain.Replacement != nil && s.Drain.Replacement.Phase == v1beta1.ReplacementRetrying
}

// runsHook reports whether a drain waits for its hook.
func runsHook(s v1beta1.InterruptionStatus) bool {
	return s.Drain != nil && len(s.Drain.Hooks) == 1 && s.Drain.Hooks[0].State == v1beta1.HookRunning
}

// kept checks that no Interruption was lost or begun again, and that those which wait still wait in
// their phase. Those in moved have gone on.
func (w *world) kept(moved ...ec2.Instance) {
	w.t.Helper()
	now := w.mustRecords()
	for id, was := range w.begun {
		is, ok := now[id]
		switch {
		case !ok || is.UID != was.UID:
			w.t.Errorf("the Interruption of %s is lost", id)
		case slices.Contains(ids(moved), id) || slices.Contains(ids(w.fleet.replacing), id):
		case is.Status.Phase != was.Status.Phase:
			w.t.Errorf("the Interruption of %s is %s, and was %s", id, is.Status.Phase, was.Status.Phase)
		case !reflect.DeepEqual(starts(is), starts(was)):
			w.t.Errorf("the drain of %s began again: %v, and before %v", id, starts(is), starts(was))
		}
	}
}

// starts are the times at which a drain and its hooks began.
func starts(in v1beta1.Interruption) []time.Time {
	var all []time.Time
	if d := in.Status.Drain; d != nil {
		if d.StartTime != nil {
			all = append(all, d.StartTime.UTC())
		}
		for _, h := range d.Hooks {
			all = append(all, h.StartTime.UTC())
		}
	}
	return all
}

// stored checks the version in which objects are stored, so that the older CRDs can return.
func (w *world) stored() {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	if err := w.client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	checked := 0
	for _, crd := range list.Items {
		if group, _, _ := unstructured.NestedString(crd.Object, "spec", "group"); group != "lifeboat.dev" {
			continue
		}
		checked++
		versions, _, err := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		if err != nil || !slices.Equal(versions, []string{storedVersion}) {
			w.t.Errorf("objects of %s are stored as %v (%v), want %s", crd.GetName(), versions, err, storedVersion)
		}
	}
	if checked != len(kinds) {
		w.t.Errorf("%d CRDs, want %d", checked, len(kinds))
	}
}

// copyGroup is a group with the schemas of the older release, for comparison.
const copyGroup = "older.lifeboat.dev"

// copySchemas makes the API server serve the older schemas in another group, status included.
func (w *world) copySchemas() {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.older.crds(), "*.yaml"))
	if err != nil || len(files) != len(kinds) {
		w.t.Fatalf("%d CRDs in %s (%v), want %d", len(files), w.older.crds(), err, len(kinds))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			w.t.Fatal(err)
		}
		plural, _, _ := strings.Cut(crd.GetName(), ".")
		crd.SetName(plural + "." + copyGroup)
		spec, _ := crd.Object["spec"].(map[string]any)
		spec["group"] = copyGroup
		unstructured.RemoveNestedField(spec, "names", "shortNames")
		versions, _ := spec["versions"].([]any)
		for _, v := range versions {
			v, _ := v.(map[string]any)
			delete(v, "subresources")
		}
		w.create(crd)
		w.kubectl("wait", "--for=condition=Established", "crd/"+crd.GetName())
	}
}

// fit checks that the older schemas accept every object whole: the API server would reject a value
// and drop a field that they lack.
func (w *world) fit() {
	w.t.Helper()
	strict := client.WithFieldValidation(w.client, metav1.FieldValidationStrict)
	for _, kind := range kinds {
		objects, err := w.objects(w.t.Context(), storedVersion, kind)
		if err != nil {
			w.t.Fatal(err)
		}
		for name, o := range objects {
			o.SetAPIVersion(copyGroup + "/" + storedVersion)
			o.Object["metadata"] = map[string]any{"name": name, "labels": o.Object["metadata"].(map[string]any)["labels"]}
			if err := strict.Create(w.t.Context(), &o, client.DryRunAll); err != nil {
				w.t.Errorf("%s %s does not fit the older schema: %v", kind, name, err)
			}
		}
		w.t.Logf("%d objects fit the older schema of %s", len(objects), kind)
	}
}
