package instances

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/netns"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// instance is one that has power.
type instance struct {
	bootID       string
	since        time.Time // it has power
	cgroup       string
	vpc          *VPC
	link         link
	proc         *process.Process
	space        *netns.Namespace
	stopMetadata func()
}

// boot starts process 1, which waits until it has a network.
func (f *Fleet) boot(ctx context.Context, in ec2.Instance, node *corev1.Node, n int) (*instance, error) {
	address, err := netip.ParseAddr(in.PrivateIP)
	if err != nil {
		return nil, fmt.Errorf("its address: %w", err)
	}
	pods, err := podRange(n)
	if err != nil {
		return nil, err
	}
	boot := strconv.Itoa(f.boots)
	s := spec{
		Dir: f.Dir(in.ID), Cgroup: filepath.Join(f.opts.Cgroup, in.ID+"-"+boot), BootID: in.BootID, Address: address, Pods: pods,
		Node: node, Programs: f.opts.Programs, Images: f.imageDir(), Shared: f.SharedDir(), CPUs: thisMachine(),
	}
	if err := f.write(s); err != nil {
		return nil, err
	}
	i := &instance{bootID: in.BootID, since: time.Now(), cgroup: s.Cgroup, vpc: f.opts.VPC, link: link{name: "i" + boot, pods: pods}}
	release, err := i.start(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := i.connect(ctx, f, in.ID, address); err != nil {
		return nil, errors.Join(err, release.Close(), i.clear())
	}
	return i, release.Close()
}

// start starts process 1, which continues when release is closed.
func (i *instance) start(ctx context.Context, s spec) (release io.Closer, err error) {
	wait, release, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer wait.Close()
	i.proc, err = process.Start(ctx, process.Options{
		Name: "the instance", Path: filepath.Join(s.Programs.Node, "instance"),
		Args: []string{"boot", filepath.Join(s.Dir, "instance.json")},
		Env:  []string{}, Dir: "/", LogFile: filepath.Join(s.Dir, "instance.log"), Stdin: wait, Cloneflags: namespaces,
	})
	if err != nil {
		return nil, errors.Join(err, release.Close())
	}
	return release, nil
}

// connect connects the instance to the network, and starts its metadata service.
func (i *instance) connect(ctx context.Context, f *Fleet, id string, address netip.Addr) error {
	var err error
	if i.space, err = netns.Of(i.proc.PID()); err != nil {
		return err
	}
	if err := f.opts.VPC.net.attach(i.space, i.link, address); err != nil {
		return err
	}
	listen := func(context.Context) (net.Listener, error) { return i.space.Listen(net.JoinHostPort(metadata, "80")) }
	// The service outlives this call, and ends with the instance.
	i.stopMetadata, err = f.opts.Metadata(context.WithoutCancel(ctx), id, listen)
	return err
}

func (i *instance) ended() bool {
	select {
	case <-i.proc.Done():
		return true
	default:
		return false
	}
}

// unplug disconnects it: a machine without power sends nothing, not even the end of a connection.
func (i *instance) unplug() error { return i.vpc.net.unplug(i.link) }

// clear kills it and removes everything except its files.
func (i *instance) clear() error {
	i.proc.Kill9()
	if i.stopMetadata != nil {
		i.stopMetadata()
	}
	errs := []error{i.vpc.net.detach(i.link)}
	if i.space != nil {
		errs = append(errs, i.space.Close())
	}
	return errors.Join(append(errs, Sweep(context.Background(), i.cgroup))...)
}

// write writes the instance's files.
func (f *Fleet) write(s spec) error {
	files, err := s.files()
	if err != nil {
		return err
	}
	kubeconfig, err := f.opts.Cluster.InsideKubeconfig("system:node:"+s.Node.Name, "system:nodes")
	if err != nil {
		return err
	}
	for name, path := range map[string]string{"kubelet.kubeconfig": kubeconfig, "kube-proxy.kubeconfig": f.proxy} {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a kubeconfig: %w", err)
		}
		files[name] = string(text)
	}
	files["ca.crt"] = string(f.opts.Cluster.CACert())
	if err := os.MkdirAll(filepath.Join(s.Dir, "root"), 0o755); err != nil {
		return fmt.Errorf("making the instance's directory: %w", err)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.Dir, name)), 0o755); err != nil {
			return fmt.Errorf("making the instance's directory: %w", err)
		}
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the instance's files: %w", err)
		}
	}
	return nil
}
