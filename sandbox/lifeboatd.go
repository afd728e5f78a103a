package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// lifeboatTimeout is how long lifeboatd may take to become ready.
const lifeboatTimeout = 30 * time.Second

// firstLifeboat is the step of Up.
func (s *Sandbox) firstLifeboat(ctx context.Context, detail func(string)) error {
	if s.opts.NoLifeboat {
		detail("left out")
		return nil
	}
	if err := s.StartLifeboat(ctx); err != nil {
		return err
	}
	detail("receives notices from the queue")
	return nil
}

// StartLifeboat starts lifeboatd and returns when it is ready. From then on it is restarted
// whenever it ends. It does nothing if it runs.
func (s *Sandbox) StartLifeboat(ctx context.Context) error {
	if s.lifeboat == nil {
		k, err := s.newLifeboat(ctx)
		if err != nil {
			return err
		}
		s.lifeboat = k
	}
	if err := s.lifeboat.start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lifeboatTimeout)
	defer cancel()
	return waitFor(ctx, "lifeboatd to become ready", func(ctx context.Context) (bool, error) {
		return ready(ctx, s.lifeboatAddr), s.lifeboat.lastError()
	})
}

// RestartLifeboat starts lifeboatd with other arguments than Options.LifeboatdArgs. It stops a
// running one first.
func (s *Sandbox) RestartLifeboat(ctx context.Context, args ...string) error {
	if err := s.StopLifeboat(); err != nil {
		return fmt.Errorf("stopping lifeboatd: %w", err)
	}
	s.lifeboat, s.opts.LifeboatdArgs = nil, args
	return s.StartLifeboat(ctx)
}

// UseLifeboatd selects another lifeboatd for the next StartAgents and RestartLifeboat.
func (s *Sandbox) UseLifeboatd(path string) { s.opts.Lifeboatd = path }

// StopLifeboat stops lifeboatd with SIGTERM, until StartLifeboat.
func (s *Sandbox) StopLifeboat() error {
	if s.lifeboat == nil {
		return nil
	}
	return s.lifeboat.stop()
}

// KillLifeboat kills lifeboatd with SIGKILL. It is restarted, as a Deployment would do. The error
// wraps ErrRestarting if it does not run at the moment.
func (s *Sandbox) KillLifeboat() error {
	if s.lifeboat == nil {
		return fmt.Errorf("killing lifeboatd: it does not run")
	}
	if err := s.lifeboat.crash(); err != nil {
		return fmt.Errorf("killing lifeboatd: %w", err)
	}
	return nil
}

// LifeboatLog returns the path of lifeboatd's log.
func (s *Sandbox) LifeboatLog() string { return s.path("lifeboatd.log") }

const lifeboatPart = "lifeboatd"

// newLifeboat prepares lifeboatd as the chart's Deployment runs it: with its arguments, except
// addresses, and its identity.
func (s *Sandbox) newLifeboat(ctx context.Context) (*supervisor, error) {
	program, err := findLifeboatd(s.opts.Lifeboatd)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.ControllerKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	role, err := s.controllerRoleEnv()
	if err != nil {
		return nil, err
	}
	health, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	metrics, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	// If a flag is repeated, the last one is used.
	args := slices.Concat(s.controllerArgs, []string{
		"--kubeconfig=" + kubeconfig,
		"--health-probe-bind-address=" + health,
		"--metrics-bind-address=" + metrics,
		// One replica: a lease would only delay the next process after a kill.
		"--leader-elect=false",
	}, s.opts.LifeboatdArgs)
	part := Part{Name: lifeboatPart, Address: "http://" + metrics + "/metrics", Log: s.LifeboatLog()}
	started := func(pid int) { s.partStarted(part, pid) }
	s.lifeboatAddr = health
	options := process.Options{
		Name: lifeboatPart, Path: program, Args: args, Env: append(lifeboatEnv(s.State()), role...), Dir: s.opts.Dir, LogFile: s.LifeboatLog(),
	}
	return &supervisor{
		name: lifeboatPart, log: s.log, started: started,
		launch: func(ctx context.Context) (*process.Process, error) { return process.Start(ctx, options) },
	}, nil
}

// lifeboatEnv is lifeboatd's environment.
func lifeboatEnv(st State) []string {
	return append(cloudEnv(st), "AWS_EC2_METADATA_DISABLED=true")
}

// bareEnv is the environment without a developer's own AWS and Kubernetes configuration.
func bareEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") && !strings.HasPrefix(kv, "KUBE") {
			env = append(env, kv)
		}
	}
	return append(env, "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
}

// ready requests /readyz.
func ready(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
