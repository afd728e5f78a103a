// Package controlplane runs a real Kubernetes control plane, etcd included, as one child process on
// a loopback port.
//
// All its files are in one directory. Several control planes can run concurrently. After a kill it
// can be started again with its data and its port.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

const (
	// ServiceCIDR is the network of the services' addresses.
	ServiceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1" // of the service "kubernetes": the first in ServiceCIDR

	defaultReadyTimeout = time.Minute
	// stopGrace covers the orderly stop of four components, about 3 s on a quiet machine.
	stopGrace = 45 * time.Second
)

// Options are the options of a control plane.
type Options struct {
	Binary string // the kubernetes program, from assets.Ensure; required
	Dir    string // directory of all files; created if missing; required

	// NodeMonitorGracePeriod is how long a node may be silent before it becomes NotReady. 0 means
	// Kubernetes' default, 50 s. A node must send several heartbeats within it.
	NodeMonitorGracePeriod time.Duration

	// More flags for the components, as --name=value. Other flags have upstream's defaults: pods
	// tolerate a dead node for 300 s (admission adds the toleration), and pods of a deleted Node
	// are collected after 40 to 60 s.
	APIServerArgs, ControllerManagerArgs, SchedulerArgs []string

	// ProcessArgs are more flags of the control-plane command itself, such as --external-etcd.
	ProcessArgs []string

	ReadyTimeout time.Duration // for the API server to become ready; 0 means a minute

	// Network is its network namespace; nil means this machine's network.
	Network Network
}

// Network is a separate network that a control plane can run in.
type Network interface {
	// Address is the control plane's address for the machines in it.
	Address() string
	// Enter moves the calling thread into the network, permanently.
	Enter() error
	// Listen listens in the network.
	Listen(address string) (*net.TCPListener, error)
	// Carry forwards connections from a listener of this machine to an address there, for the
	// lifetime of the network.
	Carry(l net.Listener, address string)
}

// ControlPlane is a running control plane. Its methods are not safe for concurrent use, except
// those that only read.
type ControlPlane struct {
	opts  Options
	ca    *authority
	admin *rest.Config
	port  int
	proc  *process.Process
}

// Start starts a control plane and returns when its API server is ready. With an existing directory
// it uses the data there, on a new port. ctx limits only the start.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if opts.Binary == "" || opts.Dir == "" {
		return nil, errors.New("starting the control plane: Binary and Dir are required")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	opts.Dir = dir
	if opts.ReadyTimeout == 0 {
		opts.ReadyTimeout = defaultReadyTimeout
	}
	c := &ControlPlane{opts: opts}
	hosts := []string{loopback, "localhost", serviceIP, "kubernetes.default.svc"}
	if opts.Network != nil {
		hosts = append(hosts, opts.Network.Address())
	}
	c.ca, err = loadPKI(c.path("pki"), hosts)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	l, err := c.listen()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if err := c.writeAdmin(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), l.Close())
	}
	if err := c.launch(ctx, l); err != nil {
		return nil, err
	}
	return c, nil
}

// Restart starts the control plane again with its data and on its port. It may be stopped, killed
// or running.
func (c *ControlPlane) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return fmt.Errorf("restarting the control plane: %w", err)
	}
	l, err := c.listenAgain(ctx)
	if err != nil {
		return fmt.Errorf("restarting the control plane: %w", err)
	}
	return c.launch(ctx, l)
}

// launch starts the process on a listening socket and waits until it is ready; if it does not become ready, it is stopped.
func (c *ControlPlane) launch(ctx context.Context, l *net.TCPListener) error {
	s, err := socket(l)
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	defer s.Close()
	c.proc, err = process.Start(ctx, process.Options{
		Name:       "the control plane",
		Path:       c.opts.Binary,
		Args:       c.args(),
		Dir:        c.opts.Dir,
		LogFile:    c.LogFile(),
		ExtraFiles: []*os.File{s}, // descriptor 3, see args
		StopGrace:  stopGrace,
		Enter:      c.enter(),
	})
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		c.proc.Kill9()
		return err
	}
	return nil
}

func (c *ControlPlane) args() []string {
	args := []string{
		"control-plane",
		"--data-dir=" + c.path("data"),
		"--pki-dir=" + c.path("pki"),
		"--kubeconfig=" + c.Kubeconfig(),
		"--service-cidr=" + ServiceCIDR,
		"--listen-fd=3",
	}
	args = append(args, c.opts.ProcessArgs...)
	if g := c.opts.NodeMonitorGracePeriod; g > 0 {
		// Frequent enough that the grace period, not the polling, decides.
		args = append(args, "--kcm-arg=--node-monitor-grace-period="+g.String(), "--kcm-arg=--node-monitor-period=1s")
	}
	for _, a := range append(c.networkArgs(), c.opts.APIServerArgs...) {
		args = append(args, "--apiserver-arg="+a)
	}
	for _, a := range c.opts.ControllerManagerArgs {
		args = append(args, "--kcm-arg="+a)
	}
	for _, a := range c.opts.SchedulerArgs {
		args = append(args, "--scheduler-arg="+a)
	}
	return args
}

func (c *ControlPlane) waitReady(ctx context.Context) error {
	config := c.RESTConfig()
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("waiting for the control plane: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ReadyTimeout)
	defer cancel()
	for {
		var status int
		client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-c.proc.Done():
			if err := c.proc.Err(); err != nil {
				return err
			}
			return errors.New("the control plane ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("waiting for the control plane: %w; the last lines of %s:\n  %s",
				ctx.Err(), c.LogFile(), strings.Join(c.proc.LastLines(), "\n  "))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// WaitDefaultServiceAccount waits until namespace has its default service account: before that, the
// API server rejects pods there. The controller manager creates it about a second after the API
// server is ready.
func (c *ControlPlane) WaitDefaultServiceAccount(ctx context.Context, namespace string) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("waiting for the default service account of %s: %w", namespace, err)
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the default service account of %s: %w", namespace, err)
	}
	return nil
}

// URL is the API server's address.
func (c *ControlPlane) URL() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(c.port))
}

// LogFile is the path of the process's log.
func (c *ControlPlane) LogFile() string { return c.path("control-plane.log") }

// PID is the id of the current process.
func (c *ControlPlane) PID() int { return c.proc.PID() }

// Done is closed when the current process has ended; a Restart makes a new one.
func (c *ControlPlane) Done() <-chan struct{} { return c.proc.Done() }

// Err is the reason why the process ended unexpectedly, with the end of its log; see process.Process.Err.
func (c *ControlPlane) Err() error { return c.proc.Err() }

// Stop stops the components in order, which takes about 3 s. The data stays.
func (c *ControlPlane) Stop() error { return c.proc.Stop() }

// Kill9 kills the process as a crash would: for tests, and if its data is deleted anyway.
func (c *ControlPlane) Kill9() { c.proc.Kill9() }

func (c *ControlPlane) path(name string) string { return filepath.Join(c.opts.Dir, name) }
