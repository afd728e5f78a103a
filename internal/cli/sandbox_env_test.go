package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// selected are the sandboxes that a harness's commands look for.
func (h *harness) selected() *[]string {
	var names []string
	setup := h.setup
	h.setup = func(s *session) {
		if setup != nil {
			setup(s)
		}
		find := s.findSandbox
		s.findSandbox = func(name string) (connection, error) {
			names = append(names, name)
			return find(name)
		}
	}
	return &names
}

// What `lifeboat sandbox env` exports is enough: commands need no flag.
func TestEnvironmentSelectsSandbox(t *testing.T) {
	e := newEmulated(t)
	id := e.launch(t, &ec2.SpotOptions{})
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, withUser("carol"), node(nodeName, "aws:///us-east-1a/"+id)),
		getenv: map[string]string{sandboxstate.NameEnv: "second"}}
	names := h.selected()
	for _, args := range []string{"interrupt " + nodeName + " --via fis", "status", "doctor"} {
		*names = nil
		r := h.run(t.Context(), strings.Fields(args)...)
		if r.code == ExitUsage || !slices.Contains(*names, "second") {
			t.Errorf("lifeboat %s: exit code %d, used the sandboxes %q\n%s%s", args, r.code, *names, r.out, r.err)
		}
	}
	if got := e.warnings(); !slices.Equal(got, []string{id}) {
		t.Errorf("EC2 warned of %v, want %s", got, id)
	}
	*names = nil
	if h.run(t.Context(), "status", "--sandbox", "third"); !slices.Equal(*names, []string{"third"}) {
		t.Errorf("the flag selects %q", *names)
	}
	*names = nil
	if h.run(t.Context(), "status", "--sandbox", ""); *names != nil {
		t.Errorf("an empty flag selects %q", *names)
	}
	r := h.run(t.Context(), "status", "--context", "prod")
	if r.code != ExitUsage || !strings.Contains(r.err, "$LIFEBOAT_SANDBOX selects the sandbox second") || !strings.Contains(r.err, "--context") {
		t.Errorf("another cluster beside the sandbox: exit code %d\n%s", r.code, r.err)
	}
}

// The commands that support-bundle runs use the same sandbox.
func TestSupportBundleUsesSandbox(t *testing.T) {
	e := newBrokenAccount(t)
	e.lifeboatIs(&doctor.Process{Alive: true})
	names := e.selected()
	out := t.TempDir() + "/bundle.tgz"
	r := e.run(t.Context(), "support-bundle", "--sandbox", "second", "--file", out)
	if r.code != ExitOK || !slices.Contains(*names, "second") {
		t.Fatalf("exit code %d, sandboxes %q\n%s%s", r.code, *names, r.out, r.err)
	}
	if got := archive(t, out); strings.Contains(got["doctor.json"]+got["doctor.txt"], "lifeboat-missing") {
		t.Errorf("doctor did not look at the process:\n%v", got)
	}
}

// In a sandbox Lifeboat is a process. Its ServiceAccount belongs to no release, so no command may
// upgrade one.
func TestDoctorKnowsProcessOfSandbox(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: lifeboatController}}
	e := newBrokenAccount(t)
	e.cluster = fakeCluster(t, interceptor.Funcs{}, account)
	r := e.run(t.Context(), "status", "--sandbox", "default")
	if r.code != ExitOK || !strings.Contains(r.out, "health    Lifeboat runs as a process of the sandbox.") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	e.lifeboatIs(nil)
	r = e.doctor()
	if r.code != exitBroken || !strings.Contains(r.out, "no program reads them\n    → helm install lifeboat") {
		t.Errorf("no release: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	account.Annotations, account.ResourceVersion = map[string]string{helmRelease: "lifeboat"}, ""
	e.cluster = fakeCluster(t, interceptor.Funcs{}, account)
	if r = e.doctor(); r.code != exitBroken || !strings.Contains(r.out, "no program reads them\n    → helm upgrade lifeboat") {
		t.Errorf("a release without a Deployment: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// A user who starts a sandbox without Lifeboat can install the chart in it.
func TestDoctorAcceptsChartInSandbox(t *testing.T) {
	e := newBrokenAccount(t)
	e.lifeboatIs(&doctor.Process{})
	e.cluster = fakeCluster(t, interceptor.Funcs{}, newInstallation().objects()...)
	if r := e.run(t.Context(), "status", "--sandbox", "default"); r.code != ExitOK || !strings.Contains(r.out, "2 of 2 controllers are ready") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestHelpHasGroups(t *testing.T) {
	r := (&harness{t: t}).run(context.Background(), "--help")
	for _, want := range []string{"\nTry Lifeboat, and test it:\n", "\nKnow before an interruption:\n", "\nSet up:\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the help has no group %q:\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "Additional Commands") {
		t.Errorf("a command has no group:\n%s", r.out)
	}
}
