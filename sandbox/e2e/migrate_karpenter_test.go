//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/migrate"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// TestAPIServerAcceptsMigratedManifests uses only an API server with Karpenter's CRDs. It must
// reject what `lifeboat migrate karpenter` reports as broken, and accept the rest.
func TestAPIServerAcceptsMigratedManifests(t *testing.T) {
	t.Parallel()
	c := serveKarpenter(t)
	for _, name := range []string{"walkthrough.in.yaml", "everything.in.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "internal", "migrate", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objectsOf(t, text) {
			if err := offer(t, c, o); !meta.IsNoMatchError(err) {
				t.Errorf("%s: unconverted %s %s: got error %v, want no match", name, o.GetKind(), o.GetName(), err)
			}
		}
		r, err := migrate.Convert([]migrate.File{{Name: name, Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		wrong := map[string]bool{}
		for _, f := range r.Findings {
			wrong[f.Object] = wrong[f.Object] || f.Severity == finding.Broken || f.ID == "unknown-field"
		}
		for _, o := range objectsOf(t, r.Output) {
			title := o.GetKind() + " " + o.GetName()
			// The API server cannot check scripts in user data.
			if err := offer(t, c, o); (err != nil) != wrong[title] && title != "EC2NodeClass old-scripts" {
				t.Errorf("%s: converted %s: error %v", name, title, err)
			}
		}
	}
}

// serveKarpenter starts an API server with Karpenter's CRDs.
func serveKarpenter(t *testing.T) client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the programs may need a build
	defer cancel()
	paths, err := assets.EnsureKarpenter(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	crds, err := karpenter.CRDs(ctx, paths.Karpenter)
	if err != nil {
		t.Fatal(err)
	}
	c := serveKinds(ctx, t, paths.Kubernetes, crds...)
	r := &rig{t: t}
	r.until("the API server to serve Karpenter's objects", time.Minute, func(ctx context.Context) (bool, error) {
		for _, list := range []string{"NodePool", "EC2NodeClass"} {
			group := map[string]string{"NodePool": "karpenter.sh", "EC2NodeClass": "karpenter.k8s.aws"}[list]
			l := &unstructured.UnstructuredList{}
			l.SetAPIVersion(group + "/v1")
			l.SetKind(list + "List")
			if err := c.List(ctx, l); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return c
}

// objectsOf parses the NodePools and EC2NodeClasses of a text.
func objectsOf(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(string(text), -1) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all := []*unstructured.Unstructured{o}
		if o.IsList() {
			l, err := o.ToList()
			if err != nil {
				t.Fatal(err)
			}
			all = nil
			for i := range l.Items {
				all = append(all, &l.Items[i])
			}
		}
		for _, o := range all {
			if o.GetKind() == "NodePool" || o.GetKind() == "EC2NodeClass" {
				out = append(out, o)
			}
		}
	}
	return out
}

// offer validates an object with a dry-run create, after adding the fields that the examples omit.
func offer(t *testing.T, c client.Client, o *unstructured.Unstructured) error {
	t.Helper()
	o = o.DeepCopy()
	if o.GetKind() == "EC2NodeClass" {
		for field, value := range map[string]any{
			"role": "nodes", "subnetSelectorTerms": []any{map[string]any{"id": "subnet-0a"}}, "securityGroupSelectorTerms": []any{map[string]any{"id": "sg-0a"}},
		} {
			if _, there, err := unstructured.NestedFieldNoCopy(o.Object, "spec", field); err != nil || there {
				continue
			}
			if err := unstructured.SetNestedField(o.Object, value, "spec", field); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := c.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	var status apierrors.APIStatus
	if err != nil && !errors.As(err, &status) && !meta.IsNoMatchError(err) && !strings.Contains(err.Error(), "no matches") {
		t.Fatal(err)
	}
	return err
}
