package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch applies a patch to an object or, if sub is "status", to its status: a merge patch, or a
// JSON patch with add or replace operations.
func (s *Server) Patch(k Key, sub string, patch []byte) (client.Object, error) {
	was := s.objects[k]
	if was == nil {
		return nil, apierrors.NewNotFound(k.resource(), k.Name)
	}
	patched, err := patchedWith(was, patch)
	if pod, ok := was.(*corev1.Pod); ok && sub == "status" {
		patched, err = podStatusWith(pod, patch)
	}
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case patched.GetResourceVersion() != was.GetResourceVersion():
		return nil, apierrors.NewConflict(k.resource(), k.Name, errors.New("the object has been modified"))
	case patched.GetUID() != was.GetUID():
		return nil, apierrors.NewConflict(k.resource(), k.Name, errors.New("the UID differs"))
	}
	switch sub {
	case "status":
		patched = withStatusOf(was, patched)
	default:
		if hasStatusSubresource(k.Kind) {
			patched = withStatusOf(patched, was)
		}
	}
	if equality.Semantic.DeepEqual(was, patched) {
		return was, nil
	}
	return s.Put(patched), nil
}

// podStatusWith applies a strategic merge patch: conditions are merged by type.
func podStatusWith(was *corev1.Pod, patch []byte) (client.Object, error) {
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	if text, err = strategicpatch.StrategicMergePatch(text, patch, &corev1.Pod{}); err != nil {
		return nil, err
	}
	patched := &corev1.Pod{}
	return patched, json.Unmarshal(text, patched)
}

func patchedWith(was client.Object, patch []byte) (client.Object, error) {
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	var into, with map[string]any
	var ops []operation
	if err := json.Unmarshal(text, &into); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(patch, []byte("[")) {
		err = json.Unmarshal(patch, &ops)
	} else {
		err = json.Unmarshal(patch, &with)
	}
	into = mergeMaps(into, with)
	for _, op := range ops {
		err = errors.Join(err, op.apply(into))
	}
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(into); err != nil {
		return nil, err
	}
	patched := empty(was)
	return patched, json.Unmarshal(text, patched)
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// apply sets a value; escaped names are not supported.
func (o operation) apply(into map[string]any) error {
	path := strings.Split(o.Path, "/")
	if o.Op != "add" && o.Op != "replace" || len(path) < 2 || path[0] != "" || strings.Contains(o.Path, "~") {
		return fmt.Errorf("JSON patch: the model does not support %s of %q", o.Op, o.Path)
	}
	for _, name := range path[1 : len(path)-1] {
		inner, ok := into[name].(map[string]any)
		if !ok {
			return fmt.Errorf("JSON patch: nothing is at %q", o.Path)
		}
		into = inner
	}
	into[path[len(path)-1]] = o.Value
	return nil
}

// mergeMaps implements RFC 7386.
func mergeMaps(into, with map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for k, v := range with {
		switch v := v.(type) {
		case nil:
			delete(into, k)
		case map[string]any:
			was, _ := into[k].(map[string]any)
			into[k] = mergeMaps(was, v)
		default:
			into[k] = v
		}
	}
	return into
}
