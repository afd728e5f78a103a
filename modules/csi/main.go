// Command csi is a small CSI driver for tests with real kubelets. It represents EBS
// and its driver (kubernetes-sigs/aws-ebs-csi-driver): a disk is a directory, and is
// attached to one instance at a time.
//
// It runs twice: `csi controller` beside csi-attacher, and `csi node` on each
// instance, where the kubelet finds it through its registration socket.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const usage = `csi: a CSI driver for tests, whose disks are directories

  csi controller --disks=DIR --socket=FILE
  csi node --disks=DIR --instance=ID --kubelet=DIR
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "csi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("name a role\n" + usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	at := flags.String("disks", "", "directory of all disks")
	socket := flags.String("socket", "", "socket of the controller")
	instance := flags.String("instance", "", "instance of the node")
	kubelet := flags.String("kubelet", "/var/lib/kubelet", "the kubelet's directory")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	d := disks{dir: *at}
	switch {
	case args[0] == "controller" && *at != "" && *socket != "":
		return serve(ctx, map[string]func(*grpc.Server){*socket: func(s *grpc.Server) {
			csi.RegisterIdentityServer(s, identity{controller: true})
			csi.RegisterControllerServer(s, &controller{disks: d})
		}})
	case args[0] == "node" && *at != "" && *instance != "":
		plugin := filepath.Join(*kubelet, "plugins", Name, "csi.sock")
		return serve(ctx, map[string]func(*grpc.Server){
			plugin: func(s *grpc.Server) {
				csi.RegisterIdentityServer(s, identity{})
				csi.RegisterNodeServer(s, &node{disks: d, instance: *instance})
			},
			// The kubelet watches this directory.
			filepath.Join(*kubelet, "plugins_registry", Name+"-reg.sock"): func(s *grpc.Server) {
				registration.RegisterRegistrationServer(s, registrar{endpoint: plugin})
			},
		})
	}
	return errors.New("a role or its flags are missing\n" + usage)
}

// serve serves on all sockets until ctx ends, or one fails.
func serve(ctx context.Context, sockets map[string]func(*grpc.Server)) error {
	ended := make(chan error, len(sockets))
	for path, register := range sockets {
		l, err := listen(path)
		if err != nil {
			return err
		}
		s := grpc.NewServer(grpc.UnaryInterceptor(logCall))
		register(s)
		defer s.Stop()
		go func() { ended <- s.Serve(l) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	}
}

// listen replaces the socket of an earlier process.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the socket's directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing an earlier socket: %w", err)
	}
	return net.Listen("unix", path)
}

// logCall writes every call and its result to standard error.
func logCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	out, err := handle(ctx, req)
	fmt.Fprintf(os.Stderr, "%s {%v}: %v\n", info.FullMethod, req, err)
	return out, err
}
