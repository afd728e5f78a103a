package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// The components' NewXxxCommand constructors cannot share a process: each
// installs Kubernetes' only signal handler, and the second call panics. So their
// options are built and parsed here and their Run functions called.

// settings are the options of the three Kubernetes components, each with its flags parsed.
type settings struct {
	apiServer *apiserveroptions.ServerRunOptions
	manager   *kcmoptions.KubeControllerManagerOptions
	scheduler *scheduleroptions.Options
}

// configure creates the settings for an API server on listener, and applies the
// global settings of the process.
func configure(o options, listener net.Listener) (settings, error) {
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return settings{}, fmt.Errorf("listening for the API server: %s is not a TCP address", listener.Addr())
	}
	manager, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return settings{}, fmt.Errorf("making the controller manager's options: %w", err)
	}
	s := settings{apiServer: apiserveroptions.NewServerRunOptions(), manager: manager, scheduler: scheduleroptions.NewOptions()}
	s.apiServer.SecureServing.Listener = listener
	for _, c := range []struct {
		name  string
		flags cliflag.NamedFlagSets
		args  []string
	}{
		{"kube-apiserver", s.apiServer.Flags(), o.apiServerFlags(addr)},
		{"kube-controller-manager", s.manager.Flags(kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases()), o.kcmFlags()},
		{"kube-scheduler", *s.scheduler.Flags, o.schedulerFlags()},
	} {
		if err := parse(c.name, c.flags, c.args); err != nil {
			return settings{}, err
		}
	}
	return s, applyGlobals(s.apiServer)
}

// run runs the components until ctx ends, then stops them in order: controllers,
// API server, etcd. It returns early when one of them ends.
func run(ctx context.Context, o options) error {
	listener, err := o.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	s, err := configure(o, listener)
	if err != nil {
		return err
	}
	if err := enterDataDir(o.dataDir); err != nil {
		return err
	}
	var etcdErr <-chan error // nil, which blocks forever, if etcd is another process
	if !o.externalEtcd {
		etcd, err := startEtcd(ctx, o.dataDir, false)
		if err != nil {
			return err
		}
		defer etcd.Close()
		etcdErr = etcd.Err()
	}
	api := start("kube-apiserver", s.runAPIServer)
	defer api.stop()
	if err := waitReady(ctx, o.kubeconfig, api); err != nil {
		return err
	}
	klog.Infof("control plane: API server ready on %s", listener.Addr())
	ended := make(chan *component, 3)
	running := []*component{api}
	if !o.apiServerOnly {
		controllers := start("kube-controller-manager", s.runControllerManager)
		defer controllers.stop()
		scheduling := start("kube-scheduler", s.runScheduler)
		defer scheduling.stop()
		running = append(running, controllers, scheduling)
	}
	for _, c := range running {
		go func() { <-c.done; ended <- c }()
	}

	select {
	case <-ctx.Done():
		klog.Info("control plane: stopping")
		return nil
	case c := <-ended:
		return c.ended()
	case err := <-etcdErr:
		return fmt.Errorf("etcd ended: %w", err)
	}
}

// parse gives a component its flags, in a flag set of its own: they overlap.
func parse(component string, named cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(component, pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, f := range named.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	return nil
}

// applyGlobals sets, once for the process, what every component's command would
// set for itself: feature gates and logging.
func applyGlobals(server *apiserveroptions.ServerRunOptions) error {
	registry := server.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return fmt.Errorf("setting the feature gates: %w", err)
	}
	// Some code paths apply the logging options again, which is allowed if they are
	// unchanged.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	if err := logsapi.ValidateAndApply(server.Logs, registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)); err != nil {
		return fmt.Errorf("setting up logging: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return nil
}

func (s settings) runAPIServer(ctx context.Context) error {
	completed, err := s.apiServer.Complete(ctx)
	if err != nil {
		return fmt.Errorf("completing the options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("validating the options: %w", errors.Join(errs...))
	}
	return apiserver.Run(ctx, completed)
}

func (s settings) runControllerManager(ctx context.Context) error {
	config, err := s.manager.Config(ctx, kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases())
	if err != nil {
		return fmt.Errorf("making the configuration: %w", err)
	}
	return kcm.Run(ctx, config.Complete())
}

func (s settings) runScheduler(ctx context.Context) error {
	config, sched, err := scheduler.Setup(ctx, s.scheduler)
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	return scheduler.Run(ctx, config, sched)
}

// waitReady returns when /readyz answers OK, or with an error when the API
// server ends first.
func waitReady(ctx context.Context, kubeconfig string, api *component) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading --kubeconfig: %w", err)
	}
	config.Timeout = 2 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client from --kubeconfig: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var status int
		client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-api.done:
			return api.ended()
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server: %w", ctx.Err())
		}
	}
}
