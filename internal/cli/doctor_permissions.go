package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
)

// asController returns a client with the permissions of the controller.
func (c *cluster) asController() (client.Client, error) {
	return c.as(rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + lifeboatNamespace + ":" + lifeboatController,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + lifeboatNamespace, "system:authenticated"},
	})
}

// crds compares the CRDs in the cluster with those of this version. A cluster without any
// is a finding of installed.
func (d *doctorRun) crds(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil || d.lifeboat.CRDsMissing {
		return nil, nil
	}
	wanted, err := installed.CRDs()
	if err != nil {
		return nil, err
	}
	var all []finding.Finding
	found := 0
	for name, want := range wanted {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(want.GroupVersionKind())
		err := d.kube.get(ctx, name, got)
		switch {
		case apierrors.IsNotFound(err):
			got = nil
		case apierrors.IsForbidden(err):
			return []finding.Finding{installed.NotChecked(err)}, nil
		case err != nil:
			return nil, fmt.Errorf("reading the CRD %s: %w", name, err)
		default:
			found++
		}
		if f := installed.CheckCRD(want, got); f != nil {
			all = append(all, *f)
		}
	}
	if found == 0 { // another server serves the API, or a cluster in memory
		return nil, nil
	}
	return all, nil
}

// get reads an object without a namespace.
func (c *cluster) get(ctx context.Context, name string, into client.Object) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return c.Get(ctx, client.ObjectKey{Name: name}, into)
}

// controllerPermissions checks that the controller's ServiceAccount has every permission that the chart
// grants, and those that the policies need, if they are read. It checks nothing if the chart is not installed.
func (d *doctorRun) controllerPermissions(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil || d.kube.as == nil || !d.lifeboat.Release {
		return nil, nil
	}
	required, err := installed.Required(installed.Uses{
		Surge: !slices.Contains(d.controllerArgs, "--surge=false"),
		Deregistration: slices.ContainsFunc(d.policiesFound, func(p v1beta1.InterruptionPolicy) bool {
			return p.Spec.WaitForDeregistration != nil
		}),
	})
	if err != nil {
		return nil, err
	}
	denied, err := d.denied(ctx, required)
	switch {
	case err != nil:
		return []finding.Finding{installed.NotChecked(err)}, nil
	case len(denied) > 0:
		return []finding.Finding{installed.Incomplete(denied)}, nil
	}
	return nil, nil
}

// denied returns the permissions that the controller does not have. It asks for all rules at
// once, and about a single permission only if the API server does not know all rules: an
// authorization webhook, as EKS has one, cannot list them.
func (d *doctorRun) denied(ctx context.Context, required []installed.Permission) ([]installed.Permission, error) {
	as, err := d.kube.asController()
	if err != nil {
		return nil, err
	}
	everywhere, errEverywhere := d.rulesIn(ctx, as, "default")
	own, errOwn := d.rulesIn(ctx, as, lifeboatNamespace)
	if err := errors.Join(errEverywhere, errOwn); err != nil {
		return nil, err
	}
	var denied []installed.Permission
	for _, p := range installed.Denied(required, everywhere.ResourceRules, own.ResourceRules) {
		if everywhere.Incomplete || own.Incomplete {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: p.Attributes()}}
			if err := d.create(ctx, as, review); err != nil {
				return nil, err
			}
			if review.Status.Allowed {
				continue
			}
		}
		denied = append(denied, p)
	}
	return denied, nil
}

// rulesIn returns the rules for a user in a namespace.
func (d *doctorRun) rulesIn(ctx context.Context, as client.Client, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	err := d.create(ctx, as, review)
	return review.Status, err
}

func (d *doctorRun) create(ctx context.Context, as client.Client, o client.Object) error {
	ctx, cancel := d.kube.limit(ctx)
	defer cancel()
	return as.Create(ctx, o)
}

// policies checks the InterruptionPolicies, and the nodes that they select.
func (d *doctorRun) policies(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil || d.lifeboat.CRDsMissing {
		return nil, nil
	}
	var policies v1beta1.InterruptionPolicyList
	if err := d.kube.list(ctx, "policies", &policies); err != nil {
		return nil, err
	}
	d.policiesFound, d.policiesRead = policies.Items, true
	nodes, err := d.kube.nodes(ctx)
	return append(doctor.CheckPolicies(policies.Items, nodes), doctor.CheckNodes(nodes)...), err
}
