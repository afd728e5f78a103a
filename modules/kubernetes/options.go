package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
)

// options is the command line of control-plane.
type options struct {
	dataDir       string // etcd's data; survives a kill and is taken up again
	pkiDir        string // see the file names below
	kubeconfig    string // an administrator's, for controller manager and scheduler
	bindAddress   string
	securePort    int
	listenFD      int // a listening socket inherited from the parent, or -1
	serviceCIDR   string
	externalEtcd  bool // etcd is another process, with the same data directory
	apiServerOnly bool // without controller manager and scheduler
	apiServerArgs []string
	kcmArgs       []string
	schedulerArgs []string
}

// The files in pkiDir, in PEM.
const (
	caCert            = "ca.crt"
	caKey             = "ca.key"
	serverCert        = "apiserver.crt"
	serverKey         = "apiserver.key"
	serviceAccountKey = "service-account.key"
)

func parseOptions(args []string) (options, error) {
	var o options
	fs := pflag.NewFlagSet("control-plane", pflag.ContinueOnError)
	fs.StringVar(&o.dataDir, "data-dir", "", "directory for etcd's data; kept over restarts (required)")
	fs.StringVar(&o.pkiDir, "pki-dir", "", "directory with ca.crt, ca.key, apiserver.crt, apiserver.key and service-account.key (required)")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "an administrator's kubeconfig for this server, used by the controllers (required)")
	fs.StringVar(&o.bindAddress, "bind-address", "127.0.0.1", "IP address the API server listens on")
	fs.IntVar(&o.securePort, "secure-port", 0, "port the API server listens on; not with --listen-fd")
	fs.IntVar(&o.listenFD, "listen-fd", -1, "inherited file descriptor of a listening TCP socket for the API server: the parent holds the port before this process starts, so no other can take it")
	fs.StringVar(&o.serviceCIDR, "service-cidr", "10.96.0.0/16", "range of the services' cluster addresses")
	fs.BoolVar(&o.externalEtcd, "external-etcd", false, "use the etcd that `kubernetes etcd` runs with the same --data-dir")
	fs.BoolVar(&o.apiServerOnly, "apiserver-only", false, "run neither controller manager nor scheduler")
	fs.StringArrayVar(&o.apiServerArgs, "apiserver-arg", nil, "another flag for kube-apiserver, as --name=value; may be repeated")
	fs.StringArrayVar(&o.kcmArgs, "kcm-arg", nil, "another flag for kube-controller-manager, as --name=value; may be repeated")
	fs.StringArrayVar(&o.schedulerArgs, "scheduler-arg", nil, "another flag for kube-scheduler, as --name=value; may be repeated")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: flags only", fs.Arg(0))
	}
	if (o.securePort == 0) == (o.listenFD < 0) {
		return o, errors.New("give either --secure-port or --listen-fd")
	}
	// etcd's data directory becomes the working directory (see enterDataDir), so no path may be relative.
	for flag, path := range map[string]*string{"data-dir": &o.dataDir, "pki-dir": &o.pkiDir, "kubeconfig": &o.kubeconfig} {
		if err := makeAbsolute(flag, path); err != nil {
			return o, err
		}
	}
	return o, nil
}

func makeAbsolute(flag string, path *string) error {
	if *path == "" {
		return fmt.Errorf("--%s is required", flag)
	}
	abs, err := filepath.Abs(*path)
	if err != nil {
		return fmt.Errorf("resolving --%s: %w", flag, err)
	}
	*path = abs
	return nil
}

// etcdOptions is the command line of etcd.
type etcdOptions struct {
	dataDir string
	fsync   bool
}

func parseEtcdOptions(args []string) (etcdOptions, error) {
	var o etcdOptions
	fs := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	fs.StringVar(&o.dataDir, "data-dir", "", "directory for the data and the socket; the control plane's --data-dir is the same (required)")
	fs.BoolVar(&o.fsync, "fsync", true, "write to disk before a write is acknowledged, as a real etcd does")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: flags only", fs.Arg(0))
	}
	return o, makeAbsolute("data-dir", &o.dataDir)
}

func (o options) pki(name string) string { return filepath.Join(o.pkiDir, name) }

// listen opens the API server's socket, or takes over the inherited one.
func (o options) listen() (net.Listener, error) {
	if o.listenFD < 0 {
		l, err := net.Listen("tcp", net.JoinHostPort(o.bindAddress, strconv.Itoa(o.securePort)))
		if err != nil {
			return nil, fmt.Errorf("listening for the API server: %w", err)
		}
		return l, nil
	}
	f := os.NewFile(uintptr(o.listenFD), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("taking over --listen-fd %d: %w", o.listenFD, err)
	}
	return l, nil
}

// apiServerFlags are kube-apiserver's flags for a server at addr. Later flags win, so the caller's come last.
func (o options) apiServerFlags(addr *net.TCPAddr) []string {
	return append([]string{
		"--etcd-servers=" + etcdClientURL,
		"--bind-address=" + addr.IP.String(),
		"--secure-port=" + strconv.Itoa(addr.Port),
		"--tls-cert-file=" + o.pki(serverCert),
		"--tls-private-key-file=" + o.pki(serverKey),
		"--client-ca-file=" + o.pki(caCert),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + o.pki(serviceAccountKey),
		"--service-account-signing-key-file=" + o.pki(serviceAccountKey),
		"--service-cluster-ip-range=" + o.serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		// Names of simulated and of namespaced nodes are in no DNS.
		"--kubelet-preferred-address-types=InternalIP",
		// The endpoints of the service "kubernetes" may not be loopback addresses,
		// and no pod needs them here.
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}, o.apiServerArgs...)
}

func (o options) kcmFlags() []string {
	return append([]string{
		"--kubeconfig=" + o.kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		// With credentials per controller each first waits for a token, under a rate limit: 7.5 s instead
		// of 3 until the default service account is there.
		"--use-service-account-credentials=false",
		"--service-account-private-key-file=" + o.pki(serviceAccountKey),
		"--root-ca-file=" + o.pki(caCert),
		"--cluster-signing-cert-file=" + o.pki(caCert),
		"--cluster-signing-key-file=" + o.pki(caKey),
		// The server's priority and fairness is limit enough.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}, o.kcmArgs...)
}

func (o options) schedulerFlags() []string {
	return append([]string{
		"--kubeconfig=" + o.kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}, o.schedulerArgs...)
}
