package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
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
		if err := s.newReplicas(ctx); err != nil {
			return err
		}
	}
	for _, k := range append([]*supervisor{s.lifeboat}, s.standbys...) {
		if err := k.start(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lifeboatTimeout)
	defer cancel()
	return waitFor(ctx, "lifeboatd to become ready", func(ctx context.Context) (bool, error) {
		return ready(ctx, s.lifeboatAddr), s.lifeboat.lastError()
	})
}

// newReplicas prepares all replicas. Which of them leads is up to them.
func (s *Sandbox) newReplicas(ctx context.Context) error {
	for i := 2; i <= s.opts.Replicas; i++ {
		k, err := s.newLifeboat(ctx, fmt.Sprintf("%s-%d", lifeboatPart, i))
		if err != nil {
			return err
		}
		s.standbys = append(s.standbys, k)
	}
	k, err := s.newLifeboat(ctx, lifeboatPart)
	s.lifeboat = k
	return err
}

// RestartLifeboat starts lifeboatd with other arguments than Options.LifeboatdArgs. It stops a
// running one first.
func (s *Sandbox) RestartLifeboat(ctx context.Context, args ...string) error {
	if err := s.StopLifeboat(); err != nil {
		return fmt.Errorf("stopping lifeboatd: %w", err)
	}
	s.lifeboat, s.standbys, s.opts.LifeboatdArgs = nil, nil, args
	return s.StartLifeboat(ctx)
}

// UseLifeboatd selects another lifeboatd for the next StartAgents and RestartLifeboat.
func (s *Sandbox) UseLifeboatd(path string) { s.opts.Lifeboatd = path }

// StopLifeboat stops lifeboatd with SIGTERM, until StartLifeboat.
func (s *Sandbox) StopLifeboat() error {
	if s.lifeboat == nil {
		return nil
	}
	errs := []error{s.lifeboat.stop()}
	for _, k := range s.standbys {
		errs = append(errs, k.stop())
	}
	return errors.Join(errs...)
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
// addresses, and its identity. name is the replica's.
func (s *Sandbox) newLifeboat(ctx context.Context, name string) (*supervisor, error) {
	program, err := findLifeboatd(s.opts.Lifeboatd)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.ControllerKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	if kubeconfig, err = s.linkedKubeconfig(LinkLifeboatAPI, kubeconfig); err != nil {
		return nil, err
	}
	st := s.State()
	if st.AWSEndpoint, err = s.linked(LinkLifeboatAWS, st.AWSEndpoint); err != nil {
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
	}, s.electionArgs(), s.opts.LifeboatdArgs)
	part := Part{Name: name, Address: "http://" + metrics + "/metrics", Log: s.path(name + ".log")}
	started := func(pid int) { s.partStarted(part, pid) }
	s.lifeboatAddr = health
	options := process.Options{
		Name: name, Path: program, Args: args, Env: append(lifeboatEnv(st), role...), Dir: s.opts.Dir, LogFile: part.Log,
	}
	return &supervisor{
		name: name, log: s.log, started: started,
		launch: func(ctx context.Context) (*process.Process, error) { return process.Start(ctx, options) },
	}, nil
}

// electionArgs are the arguments about leader election. With one replica, a lease would only delay the
// next process after a kill.
func (s *Sandbox) electionArgs() []string {
	if s.opts.Replicas == 1 {
		return []string{"--leader-elect=false"}
	}
	return []string{"--leader-elect", "--leader-election-namespace=" + chart.Namespace}
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
