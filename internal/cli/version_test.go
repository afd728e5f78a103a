package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// release makes the harness a program of that version.
func (h *harness) release(version string) *harness {
	h.setup = func(s *session) { s.clientVersion = version }
	return h
}

func TestVersionPrintsControllerAndSkew(t *testing.T) {
	i := newInstallation()
	i.controller.Spec.Template.Spec.Containers[0].Image = "example.com/lifeboatd:0.1.0"
	h := (&harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, i.objects()...)}).release("v0.3.0")
	r := h.run(t.Context(), "version")
	if r.code != ExitOK || !strings.Contains(r.out, "\ncontroller 0.1.0, example.com/lifeboatd:0.1.0\n") || !strings.Contains(r.err, "warning: this program has version v0.3.0 and the controller 0.1.0") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	if r := h.run(t.Context(), "version", "--client"); strings.Contains(r.out, "controller") || r.err != "" {
		t.Errorf("with --client: %s%s", r.out, r.err)
	}
	if r := h.release("v0.2.0").run(t.Context(), "version"); r.err != "" {
		t.Errorf("one minor version apart: %s", r.err)
	}
	if r := h.run(t.Context(), "version", "-o", "json"); !strings.Contains(r.out, `"image": "example.com/lifeboatd:0.1.0"`) {
		t.Errorf("as JSON: %s", r.out)
	}
}

func TestVersionNeedsNoCluster(t *testing.T) {
	h := &harness{t: t, setup: func(s *session) {
		s.connect = func(context.Context) (cluster, error) { return cluster{}, errors.New("there is no kubeconfig") }
	}}
	r := h.run(t.Context(), "version")
	if r.code != ExitOK || !strings.HasPrefix(r.out, "lifeboat ") || !strings.Contains(r.err, "there is no kubeconfig") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	empty := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{})}
	if r := empty.run(t.Context(), "version"); !strings.Contains(r.out, "there is no deployment lifeboat-system/lifeboat-controller") {
		t.Errorf("without Lifeboat: %s%s", r.out, r.err)
	}
}

func TestPlanAndExplainWarnOfSkew(t *testing.T) {
	objects := append(mixedNode(), newInstallation().objects()...)
	for _, command := range []string{"plan", "explain"} {
		h := (&harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, objects...)}).release("v0.9.0")
		if r := h.run(t.Context(), command, nodeName, "--kind", "spot"); !strings.Contains(r.err, "more than one minor version apart") {
			t.Errorf("%s: %q", command, r.err)
		}
		if r := h.release("v0.1.2").run(t.Context(), command, nodeName, "--kind", "spot"); r.err != "" {
			t.Errorf("%s of a fitting version: %q", command, r.err)
		}
	}
}
