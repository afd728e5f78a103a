// Package assets finds or builds the programs that the sandbox runs: a Kubernetes control plane, kwok
// for simulated nodes, containerd and its tools for real ones, and Karpenter.
//
// The go command builds each from a nested module (modules/NAME). The results are in a cache outside
// the tree. The key of an entry is a digest of all its inputs, so a second call finds it within
// milliseconds. Archives of the sandbox contain the programs, and need neither Go nor the sources.
package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Environment variables with locations.
const (
	SourceEnv = "LIFEBOAT_SOURCE" // a clone of Lifeboat, when it cannot be found from here
	CacheEnv  = "LIFEBOAT_CACHE"  // instead of lifeboat in the user's cache directory
)

// Environment variables with minor versions, such as 1.35, instead of the default ones.
const (
	KubernetesEnv = "LIFEBOAT_KUBERNETES"
	KarpenterEnv  = "LIFEBOAT_KARPENTER"
)

// Paths has the programs and their versions.
type Paths struct {
	Kubernetes        string // see modules/kubernetes
	KubernetesVersion string // as v1.36.3
	Kwok              string // see modules/kwok
	KwokVersion       string // as v0.8.0
	// Real has the programs that only real instances need; EnsureReal fills it.
	Real Real
	// Karpenter is filled by EnsureKarpenter.
	Karpenter        string // see modules/karpenter, modules/karpenter-older
	KarpenterVersion string // as v1.14.1
	// CSI is the driver; csi-attacher is beside it. EnsureCSI fills it, see modules/csi.
	CSI        string
	CSIVersion string // csi-attacher's, as v4.13.0
	// Clients is a directory with helm and kubectl, see modules/helm; EnsureHelm fills it.
	Clients     string
	HelmVersion string // as v4.3.1
}

// Real are the programs of real instances.
type Real struct {
	// Node is a directory with containerd, its shim, the CNI plugins and the init process of an
	// instance; see modules/containerd.
	Node              string
	ContainerdVersion string // as v2.4.2
	Workload          string // the program of the sandbox's images; see modules/workload
}

// Ensure returns the programs, and builds those that the cache lacks. It reports to progress, which
// may be nil: a line that it updates on a terminal, otherwise a new line at intervals. When ctx ends,
// the build stops and leaves no files. Processes may call it concurrently; only one builds.
func Ensure(ctx context.Context, progress io.Writer) (Paths, error) {
	b, err := newBuilder(progress)
	if err != nil {
		return Paths{}, err
	}
	return b.simulated(ctx)
}

// EnsureReal is Ensure with the programs of real instances too.
func EnsureReal(ctx context.Context, progress io.Writer) (Paths, error) {
	b, err := newBuilder(progress)
	if err != nil {
		return Paths{}, err
	}
	paths, err := b.simulated(ctx)
	if err != nil {
		return Paths{}, err
	}
	containerd, version, err := b.ensure(ctx, containerdModule())
	if err != nil {
		return Paths{}, err
	}
	workload, _, err := b.ensure(ctx, workloadModule())
	if err != nil {
		return Paths{}, err
	}
	paths.Real = Real{Node: filepath.Dir(containerd), ContainerdVersion: version, Workload: workload}
	return paths, nil
}

// EnsureKarpenter is Ensure with Karpenter too.
func EnsureKarpenter(ctx context.Context, progress io.Writer) (Paths, error) {
	m := karpenterModule()
	if m.minor = os.Getenv(KarpenterEnv); m.minor == olderKarpenterMinor {
		m = olderKarpenterModule()
	}
	return ensureKarpenter(ctx, progress, m)
}

// EnsureOlderKarpenter is EnsureKarpenter with an earlier minor version, see
// modules/karpenter-older.
func EnsureOlderKarpenter(ctx context.Context, progress io.Writer) (Paths, error) {
	return ensureKarpenter(ctx, progress, olderKarpenterModule())
}

// EnsureCSI returns only Paths.CSI and CSIVersion.
func EnsureCSI(ctx context.Context, progress io.Writer) (Paths, error) {
	b, err := newBuilder(progress)
	if err != nil {
		return Paths{}, err
	}
	driver, version, err := b.ensure(ctx, csiModule())
	if err != nil {
		return Paths{}, err
	}
	return Paths{CSI: driver, CSIVersion: version}, nil
}

// EnsureHelm returns only Paths.Clients and HelmVersion.
func EnsureHelm(ctx context.Context, progress io.Writer) (Paths, error) {
	b, err := newBuilder(progress)
	if err != nil {
		return Paths{}, err
	}
	helm, version, err := b.ensure(ctx, helmModule())
	if err != nil {
		return Paths{}, err
	}
	return Paths{Clients: filepath.Dir(helm), HelmVersion: version}, nil
}

func ensureKarpenter(ctx context.Context, progress io.Writer, m module) (Paths, error) {
	b, err := newBuilder(progress)
	if err != nil {
		return Paths{}, err
	}
	paths, err := b.simulated(ctx)
	if err != nil {
		return Paths{}, err
	}
	paths.Karpenter, paths.KarpenterVersion, err = b.ensure(ctx, m)
	if err != nil {
		return Paths{}, err
	}
	return paths, nil
}

func (b *builder) simulated(ctx context.Context) (Paths, error) {
	var paths Paths
	var err error
	if paths.Kubernetes, paths.KubernetesVersion, err = b.ensure(ctx, kubernetesModule()); err != nil {
		return Paths{}, err
	}
	if paths.Kwok, paths.KwokVersion, err = b.ensure(ctx, kwokModule()); err != nil {
		return Paths{}, err
	}
	return paths, nil
}

func kubernetesModule() module {
	return module{
		name: "kubernetes", minor: os.Getenv(KubernetesEnv), pinned: "k8s.io/kubernetes", cold: "4 to 7 min", ldflags: kubernetesLDFlags,
	}
}

func kwokModule() module {
	return module{name: "kwok", pinned: "sigs.k8s.io/kwok", cold: "about 2 min", ldflags: kwokLDFlags}
}

// containerdModule is built without the snapshotters that the sandbox does not use, and that need
// C.
func containerdModule() module {
	return module{
		name: "containerd", pinned: "github.com/containerd/containerd/v2", cold: "about 1 min",
		ldflags: containerdLDFlags, tags: "no_btrfs,no_devmapper,no_zfs", packages: []string{"tool", "./instance"},
	}
}

func karpenterModule() module {
	return module{name: "karpenter", pinned: "github.com/aws/karpenter-provider-aws", cold: "about 3 min", ldflags: karpenterLDFlags}
}

// olderKarpenterMinor is the version of modules/karpenter-older.
const olderKarpenterMinor = "1.0"

func olderKarpenterModule() module {
	m := karpenterModule()
	m.name += "-older"
	return m
}

// helmModule leaves the version out of kubectl, which shares its flags.
func helmModule() module {
	return module{
		name: "helm", pinned: "helm.sh/helm/v4", cold: "about 2 min", ldflags: helmLDFlags, packages: []string{"tool", "./kubectl"},
	}
}

func csiModule() module {
	return module{
		name: "csi", pinned: "github.com/kubernetes-csi/external-attacher/v4", cold: "about 3 min",
		ldflags: func(version string) string { return "-X main.version=" + version }, packages: []string{"tool", "."},
	}
}

func workloadModule() module {
	return module{name: "workload", cold: "some seconds", ldflags: func(string) string { return "" }}
}

// kubernetesLDFlags stamps the version. Without it servers and nodes report
// v0.0.0-master+$Format:%H$, which clients that parse versions reject.
func kubernetesLDFlags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+version,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

func containerdLDFlags(version string) string {
	return "-X github.com/containerd/containerd/v2/version.Version=" + version
}

func helmLDFlags(version string) string {
	return "-X helm.sh/helm/v4/internal/version.version=" + version
}

func kwokLDFlags(version string) string {
	return "-X sigs.k8s.io/kwok/pkg/consts.Version=" + strings.TrimPrefix(version, "v")
}

// karpenterLDFlags stamps the version as upstream's Makefile does. Otherwise the version in
// Karpenter's metrics and user agent is "unspecified".
func karpenterLDFlags(version string) string {
	return "-X sigs.k8s.io/karpenter/pkg/operator.Version=" + strings.TrimPrefix(version, "v")
}

func newBuilder(progress io.Writer) (*builder, error) {
	prebuilt, err := findPrebuilt()
	if err != nil {
		return nil, err
	}
	source, sourceErr := findSource()
	if sourceErr != nil && prebuilt == "" {
		return nil, sourceErr
	}
	cache := os.Getenv(CacheEnv)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache for the sandbox's programs: %w: set %s to a directory", err, CacheEnv)
		}
		cache = filepath.Join(user, "lifeboat")
	}
	cache, err = filepath.Abs(filepath.Join(cache, "assets"))
	if err != nil {
		return nil, fmt.Errorf("finding the cache for the sandbox's programs: %w", err)
	}
	return &builder{prebuilt: prebuilt, source: source, sourceErr: sourceErr, cache: cache, progress: newProgress(progress)}, nil
}
