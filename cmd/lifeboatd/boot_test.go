package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
)

// host is a machine with files, commands and an emulated instance.
type host struct {
	t       *testing.T
	program string
	dir     string
	env     []string
	healthz string

	mu  sync.Mutex
	out bytes.Buffer
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) has(name string) bool {
	_, err := os.Stat(h.path(name))
	return err == nil
}

// Write receives the agent's log.
func (h *host) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.Write(p)
}

func (h *host) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.String()
}

func (h *host) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, append([]string{"agent", "boot", "--state-dir", h.path("state")}, args...)...)
	cmd.Env = h.env
	return cmd
}

// boot starts the agent. The returned function ends it with a signal and
// returns its error.
func (h *host) boot() (end func(syscall.Signal) error) {
	h.t.Helper()
	cmd := h.command(context.Background(), "--gate-file", h.path("run/gate"), "--image", "image-a", "--image", "image-b",
		"--pull", "touch "+h.path("REF"), "--prepare", "touch "+h.path("prepared"), "--start", "touch "+h.path("kubelet"),
		"--stop", "rm -f "+h.path("kubelet"), "--active", "test -e "+h.path("kubelet"),
		"--kubeconfig", h.path("kubeconfig"), "--kubelet-healthz", h.healthz, "--poll-interval", "1s", "--images-dir", h.dir)
	cmd.Stderr = h
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var once sync.Once
	var err error
	end = func(with syscall.Signal) error {
		once.Do(func() {
			_ = cmd.Process.Signal(with) // it may have ended already
			err = <-ended
		})
		return err
	}
	h.t.Cleanup(func() { _ = end(syscall.SIGKILL) })
	return end
}

func (h *host) until(what string, holds func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited too long until %s:\n%s", what, h.log())
		}
	}
}

func (h *host) status() string {
	h.t.Helper()
	out, err := h.command(h.t.Context(), "--status").CombinedOutput()
	if err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// inPool returns a host whose instance is on its way into the warm pool of a
// group.
func inPool(t *testing.T) (*host, *emulator.Server, string) {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Timing: ec2.Timing{PendingFor: time.Millisecond}})
	if _, err := server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil); err != nil {
		t.Fatal(err)
	}
	as := server.States.AutoScaling
	if err := as.CreateGroup(autoscaling.Group{
		Name: "g", Max: 1, Template: ec2.TemplateRef{Name: "workers", Version: "$Latest"},
		WarmPool: &autoscaling.WarmPool{State: autoscaling.WarmedRunning},
		Hooks:    []autoscaling.Hook{{Name: "lifeboat-launch", Transition: autoscaling.Launching, Heartbeat: 5 * time.Minute}},
	}); err != nil {
		t.Fatal(err)
	}
	program, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, program: program, dir: t.TempDir()}
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !h.has("healthy") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(kubelet.Close)
	h.healthz = kubelet.URL
	h.until("there is an instance", func() bool { return len(as.Members()) == 1 })
	id := as.Members()[0].InstanceID
	h.until("it has power", func() bool { in, _ := server.States.EC2.Instance(id); return in.Powered })
	metadata, stop, err := server.States.IMDS.Serve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	h.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "AWS_ENDPOINT_URL=" + url, "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + metadata,
		"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret",
	}
	return h, server, id
}

func TestBootAsAProcess(t *testing.T) {
	t.Parallel()
	h, server, id := inPool(t)
	as := server.States.AutoScaling
	state := func() string { m, _ := as.Member(id); return string(m.State) }
	end := h.boot()
	h.until("it is warm", func() bool { return state() == "Warmed:Running" })
	if !h.has("image-a") || !h.has("image-b") || !h.has("prepared") || h.has("kubelet") || h.has("run/gate") {
		t.Errorf("in the pool: pulled %t and %t, prepared %t, kubelet %t, gate %t",
			h.has("image-a"), h.has("image-b"), h.has("prepared"), h.has("kubelet"), h.has("run/gate"))
	}
	if err := end(syscall.SIGKILL); err == nil {
		t.Error("it outlived its being killed")
	}
	end = h.boot()
	if err := as.SetDesired("g", 1, false); err != nil {
		t.Fatal(err)
	}
	h.until("the gate is open", func() bool { return h.has("kubelet") && h.has("run/gate") })
	h.until("it says what it waits for", func() bool { return strings.Contains(h.status(), "the kubelet's health check does not say ok") })
	h.until("its hook holds it", func() bool { return state() == "Pending:Wait" })
	if err := os.WriteFile(h.path("healthy"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.until("it is in service", func() bool { return state() == "InService" })
	h.until("it says so", func() bool { return strings.Contains(h.status(), "nothing holds the machine (state InService)") })
	for _, f := range as.Firings() {
		if f.By != autoscaling.ByAnswer {
			t.Errorf("a firing of %s ended by %s", f.Hook, f.By)
		}
	}
	began := time.Now()
	if err := end(syscall.SIGTERM); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("it ended %s after SIGTERM: %v", time.Since(began), err)
	}
	if !h.has("kubelet") || !h.has("run/gate") {
		t.Error("the kubelet did not outlive the agent")
	}
}

func TestBootErrorsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"--poll-interval 1ms":               "from 1s to 1m",
		"--absent-for 1s":                   "write 10s or more",
		"--pull ctr":                        "add REF",
		"--wipe-path /var/lib":              "would remove too much",
		"--config /nowhere/boot.yaml":       "reading --config",
		"--status --state-dir /nowhere":     "check that the agent runs",
		"--wipe-path var/lib/cni/networks":  "would remove too much",
		"--gate-file= --image x --prepare=": "no path for the journal or the gate",
	} {
		cmd := root()
		cmd.SetArgs(append([]string{"agent", "boot"}, strings.Fields(args)...))
		cmd.SetOut(&bytes.Buffer{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := cmd.ExecuteContext(ctx)
		cancel()
		if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", args, err, says)
		}
	}
}
