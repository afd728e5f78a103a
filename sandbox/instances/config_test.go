package instances

import (
	"encoding/json"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

var update = flag.Bool("update", false, "write the golden files again")

func exampleSpec(t *testing.T, instanceType string, cpus int) spec {
	t.Helper()
	in := ec2.Instance{
		ID: "i-0a1b2c3d4e5f60718", Type: instanceType, Zone: "us-east-1a", PrivateDNSName: "ip-10-0-0-10.ec2.internal",
		Tags: map[string]string{machines.TagNodeLabels: "pool=a", machines.TagNodeTaints: "spot=true:NoSchedule"},
	}
	node, err := machines.Node(in, machines.Where{Region: "us-east-1", ZoneID: "use1-az1"})
	if err != nil {
		t.Fatal(err)
	}
	return spec{
		Dir: "/sandbox/instances/i-0a1b2c3d4e5f60718", Cgroup: "lifeboat-default-0/i-0a1b2c3d4e5f60718-1", BootID: "BOOT",
		Address: netip.MustParseAddr("10.0.0.10"), Pods: netip.MustParsePrefix("10.244.3.0/24"), Node: node,
		Programs: Programs{Node: "/cache/containerd", Kubernetes: "/cache/kubernetes/kubernetes", Workload: "/cache/workload/workload", Lifeboatd: "/bin/lifeboatd"},
		Images:   "/sandbox/instances/images", Shared: "/sandbox/instances/shared", CPUs: cpus,
	}
}

// TestFilesOfAnInstance compares the whole configuration of an instance.
func TestFilesOfAnInstance(t *testing.T) {
	files, err := exampleSpec(t, "m5.large", 2).files()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all.WriteString("== " + name + "\n" + strings.TrimRight(files[name], "\n") + "\n")
	}
	golden := filepath.Join("testdata", "files.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestMoreCPUsThanHost(t *testing.T) {
	for _, tc := range []struct {
		name, instanceType string
		cpus               int
		managed            bool
	}{
		{"as many: cgroups by class of service", "m5.large", 2, true},
		{"more: the kubelet cannot assign missing CPUs", "m5.2xlarge", 2, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := kubeletConfig(exampleSpec(t, tc.instanceType, tc.cpus))
			if _, off := config["cgroupsPerQOS"]; off == tc.managed {
				t.Errorf("cgroupsPerQOS is %v", config["cgroupsPerQOS"])
			}
		})
	}
}

func TestNoAgentProgramWithoutAgent(t *testing.T) {
	s := exampleSpec(t, "m5.large", 2)
	s.Programs.Lifeboatd = ""
	text, err := json.Marshal(machineConfig(s))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), AgentDir) {
		t.Errorf("it is mounted: %s", text)
	}
}

func TestPodRangesAreDisjoint(t *testing.T) {
	seen := map[netip.Prefix]bool{}
	for n := range mostPods {
		p, err := podRange(n)
		if err != nil || seen[p] || p.Masked() != p {
			t.Fatalf("range %d is %s (%v), seen before: %t", n, p, err, seen[p])
		}
		seen[p] = true
	}
	if p, err := podRange(mostPods); err == nil {
		t.Errorf("range %d is %s, want an error", mostPods, p)
	}
}

func TestTerminatedInstanceRangesAreReused(t *testing.T) {
	f := &Fleet{pods: map[string]int{}}
	for i, id := range []string{"a", "b", "c"} {
		if n, err := f.rangeOf(id); err != nil || n != i {
			t.Errorf("range of %s is %d (%v), want %d", id, n, err, i)
		}
	}
	delete(f.pods, "b")
	for id, want := range map[string]int{"a": 0, "c": 2} {
		if n, err := f.rangeOf(id); err != nil || n != want {
			t.Errorf("range of %s is %d (%v), want %d as before", id, n, err, want)
		}
	}
	if n, err := f.rangeOf("d"); err != nil || n != 1 {
		t.Errorf("the next one has range %d (%v), want 1, which is free", n, err)
	}
}

func TestLabelsReachKubelet(t *testing.T) {
	s := exampleSpec(t, "m5.large", 2)
	s.Node = &corev1.Node{}
	s.Node.Labels = map[string]string{"b": "2", "a": "1"}
	if args := kubeletArgs(s); !slices.Contains(args, "--node-labels=a=1,b=2") {
		t.Errorf("arguments %q", args)
	}
}

// TestInstanceRunsTheDriver checks that the driver has the id that EC2 knows, and the disks that
// outlive the instance.
func TestInstanceRunsTheDriver(t *testing.T) {
	s := exampleSpec(t, "m5.large", 2)
	without := machineConfig(s)
	s.Programs.CSI = "/cache/csi/csi"
	with := machineConfig(s)
	added := with.Programs[len(without.Programs):]
	want := []program{{
		Path: "/opt/lifeboat/csi/csi", Log: "/etc/lifeboat/csi.log",
		Args: []string{"node", "--disks=/var/lib/lifeboat/shared/disks", "--instance=i-0a1b2c3d4e5f60718"},
	}}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Error(diff)
	}
	if last := with.Binds[len(with.Binds)-1]; last != (bind{From: "/cache/csi", To: "/opt/lifeboat/csi", ReadOnly: true}) {
		t.Errorf("the program is mounted as %+v", last)
	}
}
