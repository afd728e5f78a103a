//go:build skew

package skew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/observer"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// release is a build of the programs, and the chart that belongs to it.
type release struct {
	name, bin, chart string
}

func (r release) crds() string { return filepath.Join(r.chart, "crds") }

// world is a cluster that runs one release or the other.
type world struct {
	*sandbox.Sandbox
	t            *testing.T    // of the current step
	client       client.Client // of core types, and of unstructured objects
	clients, dir string        // directories of helm and kubectl, and of files
	older, newer release
	slow         float64
	seen         *observer.Observer
	controller   *process.Process
	logs         []string
	fleet        fleet
	begun        map[string]v1beta1.Interruption // the twenty, before the upgrade
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	older, newer := os.Getenv("LIFEBOAT_OLDER"), os.Getenv("LIFEBOAT_NEWER")
	if older == "" || newer == "" {
		t.Fatal("LIFEBOAT_OLDER and LIFEBOAT_NEWER name the two releases: run `make skew`, which sets them")
	}
	w := &world{
		t: t, dir: t.TempDir(),
		older: release{"older", filepath.Join(older, "bin"), filepath.Join(older, "charts/lifeboat")},
		newer: release{"newer", newer, root(t, "charts/lifeboat")},
	}
	clients, err := assets.EnsureHelm(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	w.clients = clients.Clients
	w.up()
	return w
}

func root(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Abs(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (w *world) up() {
	t := w.t
	var took time.Duration
	o := sandbox.Options{
		Name: "skew", Dir: filepath.Join(w.dir, "s"), Lifeboatd: w.older.lifeboatd(), NoChart: true, Karpenter: true,
		BootDelay: 200 * time.Millisecond,
		Progress: func(s sandbox.Step) {
			if s.Done {
				t.Logf("%s: %s (%.1f s)", s.Name, s.Detail, s.Took.Seconds())
			}
			if s.Done && s.Name != "programs" {
				took += s.Took
			}
		},
	}
	var err error
	if w.seen, err = observer.New(w.dir, &o); err != nil {
		t.Fatal(err)
	}
	if w.Sandbox, err = sandbox.New(o); err != nil {
		t.Fatal(err)
	}
	if err := w.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Down(); err != nil {
			t.Error(err)
		}
	})
	w.seen.Connect(w.Sandbox)
	w.slow = timelimit.Factor(took)
	if w.client, err = client.New(w.RESTConfig(), client.Options{}); err != nil {
		t.Fatal(err)
	}
}

// try runs a program of a directory as the user does.
func (w *world) try(dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(dir, program), args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"HOME=" + w.dir, "PATH=/usr/bin:/bin", "KUBECONFIG=" + w.State().Kubeconfig}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) run(dir, program string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, program, args...)
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

func (w *world) helm(args ...string) string {
	w.t.Helper()
	return w.run(w.clients, "helm", args...)
}

func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	return w.run(w.clients, "kubectl", args...)
}

// until waits for a condition. The limit applies to a quiet machine.
func (w *world) until(what string, within time.Duration, holds func(context.Context) (bool, error)) {
	w.t.Helper()
	timelimit.Until(w.t, what, within, w.slow, holds)
}

// objects lists a resource of Lifeboat in a version of its API, by name.
func (w *world) objects(ctx context.Context, version, kind string) (map[string]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("lifeboat.dev/" + version)
	list.SetKind(kind + "List")
	if err := w.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing %s as %s: %w", kind, version, err)
	}
	out := map[string]unstructured.Unstructured{}
	for _, o := range list.Items {
		out[o.GetName()] = o
	}
	return out, nil
}

// explain logs what a failed step leaves.
func (w *world) explain() {
	for _, log := range w.logs {
		text, err := os.ReadFile(log)
		if err != nil {
			w.t.Log(err)
		}
		w.t.Logf("%s ends:\n%s", filepath.Base(log), text[max(0, len(text)-4000):])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	records, err := w.records(ctx)
	if err != nil {
		w.t.Log(err)
	}
	for name, r := range records {
		w.t.Logf("%s of node %s is %s", name, r.Spec.NodeName, r.Status.Phase)
		for _, e := range r.Status.Timeline {
			w.t.Logf("  %s %-20s %s", e.Time.Format("15:04:05.000"), e.Reason, e.Message)
		}
	}
}

// file writes a file for a program of the user.
func (w *world) file(name string, content any) string {
	w.t.Helper()
	text, err := json.Marshal(content)
	path := filepath.Join(w.dir, name)
	if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		w.t.Fatal(err)
	}
	return path
}
