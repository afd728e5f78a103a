package instances

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox/clusterdns"
	"github.com/lifeboat-dev/lifeboat/sandbox/images"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// Paths within an instance.
const (
	// SharedDir is a directory of this machine that all instances mount. It survives them.
	SharedDir = "/var/lib/lifeboat/shared"
	// AgentDir is lifeboatd's directory.
	AgentDir = "/opt/lifeboat/agent"
	// Disks is the directory in SharedDir of the disks that a CSI driver attaches.
	Disks = "disks"
	// ConfigDir has an instance's files and logs: on this machine, Fleet.Dir.
	ConfigDir = "/etc/lifeboat"

	programDir = "/opt/lifeboat/node"       // assets.Real.Node
	clusterDir = "/opt/lifeboat/kubernetes" // with the kubernetes program
	imageDir   = "/opt/lifeboat/images"
	csiDir     = "/opt/lifeboat/csi"
	imageFile  = "images.tar"
	socket     = "/run/containerd/containerd.sock"
	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	systemBus  = "/run/dbus/system_bus_socket"
	kubernetes = "kubernetes"
)

// The configuration of process 1; see modules/containerd/instance.
type machine struct {
	Hostname  string   `json:"hostname"`
	Cgroup    string   `json:"cgroup"`
	Root      string   `json:"root"`
	Binds     []bind   `json:"binds"`
	Covers    []cover  `json:"covers"`
	Env       []string `json:"env"`
	SystemBus string   `json:"systemBus"`
	// InhibitDelayMaxSec is as logind.conf(5) has it.
	InhibitDelayMaxSec int       `json:"inhibitDelayMaxSec"`
	Containerd         program   `json:"containerd"`
	Socket             string    `json:"socket"`
	Images             []string  `json:"images"`
	Programs           []program `json:"programs"`
}

type bind struct {
	From     string `json:"from"`
	To       string `json:"to"`
	ReadOnly bool   `json:"readOnly"`
}

type cover struct {
	To    string            `json:"to"`
	Text  string            `json:"text,omitempty"`
	Files map[string]string `json:"files,omitempty"`
}

type program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"`
}

// spec is the input of an instance's files.
type spec struct {
	Dir      string // of its files, outside
	Cgroup   string
	BootID   string
	Address  netip.Addr
	Pods     netip.Prefix
	Node     *corev1.Node // what to register
	Programs Programs
	Images   string // the directory of the archive
	Shared   string
	CPUs     int // of this machine
}

// machineConfig is process 1's.
func machineConfig(s spec) machine {
	log := func(name string) string { return ConfigDir + "/" + name + ".log" }
	binds := []bind{
		{From: s.Programs.Node, To: programDir, ReadOnly: true},
		{From: filepath.Dir(s.Programs.Kubernetes), To: clusterDir, ReadOnly: true},
		{From: s.Images, To: imageDir, ReadOnly: true},
		{From: s.Dir, To: ConfigDir},
		{From: s.Shared, To: SharedDir},
	}
	if s.Programs.Lifeboatd != "" {
		binds = append(binds, bind{From: filepath.Dir(s.Programs.Lifeboatd), To: AgentDir, ReadOnly: true})
	}
	programs := []program{
		{Path: clusterDir + "/" + kubernetes, Args: kubeletArgs(s), Log: log("kubelet")},
		{Path: clusterDir + "/" + kubernetes, Args: []string{"kube-proxy", "--config=" + ConfigDir + "/kube-proxy.yaml"}, Log: log("kube-proxy")},
	}
	if s.Programs.CSI != "" {
		binds = append(binds, bind{From: filepath.Dir(s.Programs.CSI), To: csiDir, ReadOnly: true})
		programs = append(programs, program{
			Path: csiDir + "/" + filepath.Base(s.Programs.CSI), Log: log("csi"),
			Args: []string{"node", "--disks=" + SharedDir + "/" + Disks, "--instance=" + nodeindex.InstanceID(s.Node)},
		})
	}
	return machine{
		Hostname: s.Node.Name, Cgroup: s.Cgroup, Root: filepath.Join(s.Dir, "root"), Binds: binds,
		Covers: covers(s),
		Env:    []string{"PATH=" + programDir + ":" + searchPath, "HOME=/root", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + systemBus},
		// The kubelet would set this value itself if logind's limit were lower (kubernetes
		// pkg/kubelet/nodeshutdown).
		SystemBus: systemBus, InhibitDelayMaxSec: int(machines.ShutdownGrace.Seconds()),
		Containerd: program{
			Path: programDir + "/containerd", Args: []string{"--config=" + ConfigDir + "/containerd.toml"}, Log: log("containerd"),
		},
		Socket: socket, Images: []string{imageDir + "/" + imageFile},
		Programs: programs,
	}
}

// covers hide this machine's size and identity with the instance's.
func covers(s spec) []cover {
	cpus, memory := s.size()
	node := map[string]string{}
	for i := range cpus {
		at := fmt.Sprintf("node0/cpu%d/topology/", i)
		node[at+"core_id"], node[at+"physical_package_id"] = fmt.Sprintln(i), fmt.Sprintln(0)
	}
	kib := memory >> 10
	return []cover{
		{To: "/proc/meminfo", Text: fmt.Sprintf("MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n", kib, kib/2, kib/2)},
		{To: "/proc/sys/kernel/random/boot_id", Text: s.BootID + "\n"},
		{To: "/etc/machine-id", Text: machineID(s.Node.Spec.ProviderID) + "\n"},
		{To: "/sys/devices/system/node", Files: node},
		{To: "/sys/devices/system/cpu/online", Text: cpuList(cpus)},
	}
}

// machineID is the instance's own, the same after each boot (machine-id(5)).
func machineID(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:16])
}

// size is the size of the instance's type.
func (s spec) size() (cpus int, memory int64) {
	return int(s.Node.Status.Capacity.Cpu().Value()), s.Node.Status.Capacity.Memory().Value()
}

func cpuList(n int) string {
	if n == 1 {
		return "0\n"
	}
	return fmt.Sprintf("0-%d\n", n-1)
}

func kubeletArgs(s spec) []string {
	var labels []string
	for k, v := range s.Node.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(labels)
	return []string{
		"kubelet", "--config=" + ConfigDir + "/kubelet.yaml", "--kubeconfig=" + ConfigDir + "/kubelet.kubeconfig",
		"--hostname-override=" + s.Node.Name, "--node-ip=" + s.Address.String(), "--node-labels=" + strings.Join(labels, ","),
	}
}

// files returns the files in Dir, by name.
func (s spec) files() (map[string]string, error) {
	kubelet, err := yaml.Marshal(kubeletConfig(s))
	if err != nil {
		return nil, fmt.Errorf("encoding the kubelet's configuration: %w", err)
	}
	proxy, err := yaml.Marshal(proxyConfig(s))
	if err != nil {
		return nil, fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	network, err := json.Marshal(networkConfig(s.Pods))
	if err != nil {
		return nil, fmt.Errorf("encoding the network's configuration: %w", err)
	}
	process1, err := json.MarshalIndent(machineConfig(s), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the instance's configuration: %w", err)
	}
	return map[string]string{
		"kubelet.yaml": string(kubelet), "kube-proxy.yaml": string(proxy), "cni/10-vpc.conflist": string(network),
		"containerd.toml": containerdConfig, "instance.json": string(process1),
		// Without this file containerd uses TLS for all addresses except loopback.
		"certs.d/" + Registry + "/hosts.toml": `server = "http://` + Registry + `"` + "\n",
	}, nil
}

// containerdConfig does not set the OOM score: to lower it takes CAP_SYS_RESOURCE, which a
// container that runs a sandbox may lack.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "` + socket + `"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "` + images.Pause + `"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "` + ConfigDir + `/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["` + programDir + `"]
conf_dir = "` + ConfigDir + `/cni"
`

type object = map[string]any

// kubeletConfig differs from the defaults where an instance differs from a machine, or EKS does.
func kubeletConfig(s spec) object {
	cpus, _ := s.size()
	capacity, allocatable := s.Node.Status.Capacity, s.Node.Status.Allocatable
	cpu, memory := capacity.Cpu().DeepCopy(), capacity.Memory().DeepCopy()
	cpu.Sub(*allocatable.Cpu())
	memory.Sub(*allocatable.Memory())
	config := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + socket,
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": true},
			"x509": object{"clientCAFile": ConfigDir + "/ca.crt"},
		},
		"authorization": object{"mode": "Webhook"},
		"providerID":    s.Node.Spec.ProviderID, "registerWithTaints": s.Node.Spec.Taints,
		"maxPods": allocatable.Pods().Value(), "kubeReserved": object{"cpu": cpu.String(), "memory": memory.String()},
		"cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false,
		// The instance's disk is this machine's memory, and the memory is shared: neither can run
		// out.
		"evictionHard": object{}, "localStorageCapacityIsolation": false, "imageGCHighThresholdPercent": 100,
		"clusterDNS": []string{gateway}, "clusterDomain": clusterdns.Domain,
		"resolvConf": "", // there is no other DNS in the VPC
		// A sandbox that waits for a dead node cannot wait for 40 s leases.
		"nodeLeaseDurationSeconds": 10, "nodeStatusUpdateFrequency": "4s",
		"shutdownGracePeriod":             machines.ShutdownGrace.String(),
		"shutdownGracePeriodCriticalPods": machines.CriticalShutdownGrace.String(),
	}
	if cpus > s.CPUs {
		// The kubelet writes its CPU list into a cpuset, which rejects CPUs that this machine
		// lacks.
		config["cgroupsPerQOS"], config["enforceNodeAllocatable"] = false, []string{}
	}
	return config
}

// proxyConfig does not set the size of the connection table: it belongs to the machine and cannot
// be written here.
func proxyConfig(s spec) object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "nftables", "hostnameOverride": s.Node.Name,
		"clientConnection": object{"kubeconfig": ConfigDir + "/kube-proxy.kubeconfig"},
		"nftables":         object{"minSyncPeriod": "0s"},
		"conntrack":        object{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
}

// networkConfig gives each pod an address of the instance's range and its own route, as the AWS VPC
// CNI does.
func networkConfig(pods netip.Prefix) object {
	return object{
		"cniVersion": "1.0.0", "name": "vpc",
		"plugins": []object{
			{
				"type": "ptp", "ipMasq": false,
				"ipam": object{"type": "host-local", "ranges": [][]object{{{"subnet": pods.String()}}}, "routes": []object{{"dst": "0.0.0.0/0"}}},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}, "backend": "nftables"},
		},
	}
}

// thisMachine returns this machine's number of CPUs.
func thisMachine() int { return runtime.NumCPU() }
