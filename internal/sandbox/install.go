package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifeboatchart "github.com/lifeboat-dev/lifeboat/charts/lifeboat"
)

const (
	lifeboatNamespace = "lifeboat-system"
	lifeboatUser      = "lifeboatd"
)

// install puts the CRDs into the cluster, and what lifeboatd needs to be allowed
// in it: its own role, bound to an identity of its own, and nothing more.
func (s *Sandbox) install(ctx context.Context, detail func(string)) error {
	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	crds, err := createAll(ctx, c, lifeboatchart.CRDs)
	if err != nil {
		return err
	}
	if err := create(ctx, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lifeboatNamespace}}); err != nil {
		return err
	}
	roles, err := createAll(ctx, c, lifeboatchart.RBAC)
	if err != nil {
		return err
	}
	for _, r := range roles {
		if err := create(ctx, c, bindingOf(r)); err != nil {
			return err
		}
	}
	detail(fmt.Sprintf("%d CRDs, %d roles for the user %s", len(crds), len(roles), lifeboatUser))
	return waitEstablished(ctx, c, crds)
}

// bindingOf binds a role, of the cluster or of a namespace, to lifeboatd.
func bindingOf(role *unstructured.Unstructured) client.Object {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: lifeboatUser}}
	named := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace()}
	if role.GetNamespace() == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects}
}

// createAll creates the objects of every YAML file, in order.
func createAll(ctx context.Context, c client.Client, files fs.FS) ([]*unstructured.Unstructured, error) {
	paths, err := fs.Glob(files, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing manifests: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		objects, err := decodeAll(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		for _, obj := range objects {
			if err := create(ctx, c, obj); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		out = append(out, objects...)
	}
	return out, nil
}

// decodeAll reads every document of a YAML file.
func decodeAll(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
}

func create(ctx context.Context, c client.Client, obj client.Object) error {
	if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", obj.GetName(), err)
	}
	return nil
}

// waitEstablished waits until the API server serves the new kinds.
func waitEstablished(ctx context.Context, c client.Client, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		err := waitFor(ctx, "CRD "+crd.GetName(), func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, fmt.Errorf("reading it: %w", err)
			}
			conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
			for _, cond := range conditions {
				m, _ := cond.(map[string]any)
				if m["type"] == "Established" && m["status"] == "True" {
					return true, nil
				}
			}
			return false, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
