package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

const (
	// maxPoolsTried bounds how many pools get requests: some clusters have hundreds.
	maxPoolsTried = 20
	// maxHooksTried bounds how many Jobs of hooks are tried.
	maxHooksTried = 20
	// writesTimeout bounds all requests, since a webhook that hangs delays each of them.
	writesTimeout = time.Minute
)

// writes sends what the controller writes for an interruption as dry runs, for a node of each pool.
func (d *doctorRun) writes(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil || d.kube.as == nil || d.lifeboat == nil || d.lifeboat.CRDsMissing {
		return nil, nil
	}
	as, err := d.kube.asController()
	if err != nil {
		return nil, err
	}
	t := &trial{
		as: as, now: d.now(), limit: d.kube.limit, nodes: d.nodes, policies: d.policiesFound,
		surge: !slices.Contains(d.controllerArgs, "--surge=false"),
	}
	if namespaces := argument(d.controllerArgs, "--hook-namespaces"); namespaces != "" {
		t.jobNamespaces = strings.Split(namespaces, ",")
	}
	ctx, cancel := context.WithTimeout(ctx, writesTimeout)
	defer cancel()
	found := t.run(ctx)
	if len(t.untried) > 0 {
		d.notes = append(d.notes, "Not tried as a dry run: "+strings.Join(t.untried, "; ")+".")
	}
	return found, nil
}

// trial sends the writes of the controller as dry runs.
type trial struct {
	// as has the permissions of the controller.
	as  client.Client
	now time.Time
	// limit limits the time of a request.
	limit func(context.Context) (context.Context, context.CancelFunc)
	// nodes and policies are those of the cluster, and jobNamespaces the namespaces for Jobs of hooks.
	nodes         []corev1.Node
	policies      []v1beta1.InterruptionPolicy
	jobNamespaces []string
	// surge is false if the controller surges no pods.
	surge bool

	// untried says which writes were not tried, and why.
	untried []string
}

// run sends the requests, and reports those that admission refuses or leaves open.
func (t *trial) run(ctx context.Context) (all []finding.Finding) {
	open := map[string]bool{} // webhooks that say nothing about a dry run
	for i, w := range t.table(ctx) {
		if ctx.Err() != nil {
			t.untried = append(t.untried, "the writes from "+w.object+" on (the API server took too long)")
			return all
		}
		for _, a := range t.send(ctx, w) {
			switch {
			case rejection.ByAdmission(a.err), webhookFails(a.err):
				all = append(all, admission.WriteRefused(w.object, a.request, w.effect, a.err))
			case withoutDryRun(a.err):
				if text := a.request + a.err.Error(); !open[text] { // it names no object: once says it for all
					open[text] = true
					all = append(all, admission.WriteNotDry(w.object, a.request, a.err))
				}
			case apierrors.IsForbidden(a.err) && strings.Contains(a.err.Error(), "cannot impersonate"): // so no write can be tried
				t.untried = nil
				return append(all, admission.WriteNotTried(w.object, a.err))
			case apierrors.IsForbidden(a.err) && i == 0: // others are RBAC of the controller, which another check compares
				all = append(all, admission.WriteNotTried(w.object, a.err))
			}
		}
	}
	return all
}

// send makes one write, and returns the answers to its requests.
func (t *trial) send(ctx context.Context, w write) []answer {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	c := &noting{Client: client.NewDryRunClient(t.as)}
	_ = w.send(ctx, c) // the answers have more: the product treats some refusals as results
	return c.answers
}

// withoutDryRun reports whether a webhook supports no dry runs: the API server then refuses those alone
// (k8s.io/apiserver, plugin/webhook/errors, NewDryRunUnsupportedErr).
func withoutDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// webhookFails reports whether a webhook that must answer does not. Each write then fails.
func webhookFails(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// answer is the answer of the API server to a request.
type answer struct {
	request string
	err     error
}

// noting notes the answers to writes. Several functions of the product return no error for a refusal.
type noting struct {
	client.Client
	answers []answer
}

func (n *noting) note(request string, err error) error {
	if err != nil {
		n.answers = append(n.answers, answer{request, err})
	}
	return err
}

// Create creates an object.
func (n *noting) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return n.note("creation", n.Client.Create(ctx, o, opts...))
}

// Patch patches an object.
func (n *noting) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return n.note("patch", n.Client.Patch(ctx, o, p, opts...))
}

// Delete deletes an object.
func (n *noting) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return n.note("deletion", n.Client.Delete(ctx, o, opts...))
}

// Status returns the client of the status.
func (n *noting) Status() client.SubResourceWriter { return n.SubResource("status") }

// SubResource returns the client of a subresource.
func (n *noting) SubResource(name string) client.SubResourceClient {
	return &notingSub{SubResourceClient: n.Client.SubResource(name), of: n, name: name}
}

type notingSub struct {
	client.SubResourceClient
	of   *noting
	name string
}

// Create creates a subresource, such as an eviction.
func (s *notingSub) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return s.of.note(s.name, s.SubResourceClient.Create(ctx, o, sub, opts...))
}

// Patch patches a subresource, such as the status.
func (s *notingSub) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of.note("patch of the "+s.name, s.SubResourceClient.Patch(ctx, o, p, opts...))
}
