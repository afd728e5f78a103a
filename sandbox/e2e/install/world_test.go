//go:build e2e

package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/registry"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
)

// world is an empty cluster with real nodes, a registry with image and chart, and the clients that
// a user has.
type world struct {
	*sandbox.Sandbox
	t        *testing.T // of the current step
	client   client.Client
	clients  string // directory of helm and kubectl
	dir      string // of the user's files
	registry string // its address on this machine
	digest   string // of the image

	identity  *identity
	instances map[string]ec2.Instance // by name
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if err := instances.Missing(); err != nil {
		need.Missing(t, err.Error())
	}
	ctrllog.SetLogger(logr.Discard())
	// Without a log: it would write a line for each layer.
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	w := &world{t: t, dir: t.TempDir(), registry: strings.TrimPrefix(server.URL, "http://"), instances: map[string]ec2.Instance{}}
	built := make(chan error, 1)
	go func() { built <- w.build() }()
	err := w.up()
	if err := errors.Join(err, <-built); err != nil {
		t.Fatal(err)
	}
	w.identity = newIdentity(w)
	return w
}

const (
	root         = "../../.." // of the repository
	firstVersion = "v0.1.0"   // of the release that the user installs
)

var imageDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// build builds image and chart as `make image` and `make release` do, and pushes them.
func (w *world) build() error {
	source, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"image", "-push", w.registry + "/lifeboatd"},
		{"chart", "-push", w.registry + "/charts/lifeboat"},
	} {
		args = append(args, "-insecure", "-root", source, "-version", firstVersion, "-out", filepath.Join(w.dir, "dist"))
		cmd := exec.Command("go", append([]string{"run", "-C", filepath.Join(source, "modules/release"), "."}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("release %s: %w\n%s", args[0], err, out)
		}
		if args[0] == "image" {
			w.digest = imageDigest.FindString(string(out))
		}
	}
	cli := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(w.dir, "bin")+"/",
		"-ldflags=-X github.com/lifeboat-dev/lifeboat/internal/version.version="+firstVersion, "./cmd/lifeboat")
	cli.Dir = source
	if out, err := cli.CombinedOutput(); err != nil {
		return fmt.Errorf("building lifeboat: %w\n%s", err, out)
	}
	return nil
}

func (w *world) up() error {
	s, err := sandbox.New(sandbox.Options{
		// A fixed name, different from other sandboxes: each run finds and removes what a killed
		// run left.
		Name: "e2e-install", RealNodes: true, NoChart: true,
		Progress: func(step sandbox.Step) {
			if step.Done {
				w.t.Logf("%s: %s (%.1f s)", step.Name, step.Detail, step.Took.Seconds())
			}
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Minute) // it may have to build Kubernetes first
	defer cancel()
	clients, err := assets.EnsureHelm(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := s.Up(ctx); err != nil {
		return err
	}
	w.t.Cleanup(func() {
		if err := s.Down(); err != nil {
			w.t.Error(err)
		}
	})
	w.Sandbox, w.clients = s, clients.Clients
	scheme := apiruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	if w.client, err = client.New(s.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return s.ExposeToPods(instances.Registry, w.registry)
}

// helm runs Helm as the user does.
func (w *world) helm(args ...string) string {
	w.t.Helper()
	return w.run("helm", args...)
}

func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	return w.run("kubectl", args...)
}

func (w *world) run(program string, args ...string) string {
	w.t.Helper()
	began := time.Now()
	out, err := w.try(program, args...)
	w.t.Logf("%s %s (%.1f s)\n%s", program, strings.Join(args, " "), time.Since(began).Seconds(), out)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) try(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(w.clients, program), args...)
	cmd.Dir = w.dir
	cmd.Env = w.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// env is the user's environment: helm, kubectl and lifeboat are on the path.
func (w *world) env() []string {
	path := strings.Join([]string{w.clients, filepath.Join(w.dir, "bin"), "/usr/bin", "/bin"}, ":")
	return []string{"HOME=" + w.dir, "PATH=" + path, "KUBECONFIG=" + w.State().Kubeconfig}
}
