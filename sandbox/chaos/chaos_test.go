package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/sandbox/link"
)

// TestMain is also a program that writes its wall clock to a file again and again.
func TestMain(m *testing.M) {
	path := os.Getenv("CHAOS_TEST_CLOCK")
	if path == "" {
		os.Exit(m.Run())
	}
	for ; ; time.Sleep(10 * time.Millisecond) {
		if os.WriteFile(path+".new", fmt.Append(nil, time.Now().UnixNano()), 0o600) != nil || os.Rename(path+".new", path) != nil {
			os.Exit(1)
		}
	}
}

func TestMenuIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range Menu() {
		if f.Name == "" || f.Text == "" || f.apply == nil || seen[f.Name] {
			t.Errorf("fault %+v is incomplete, or exists twice", f)
		}
		seen[f.Name] = true
	}
	if len(seen) < 30 {
		t.Errorf("%d faults", len(seen))
	}
	if !slices.IsSortedFunc(Menu(), func(a, b Fault) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the menu is not sorted")
	}
}

func TestFindSuggests(t *testing.T) {
	t.Parallel()
	if _, err := Find("kill-lifeboatd"); err != nil {
		t.Error(err)
	}
	if _, err := Find("kil-lifeboatd"); err == nil || !strings.Contains(err.Error(), "kill-lifeboatd") {
		t.Errorf("error %v does not suggest kill-lifeboatd", err)
	}
}

func TestSeedRepeatsSequence(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) (all []string) {
		next := Random(seed, Menu(), 10*time.Second)
		for range 20 {
			p := next()
			if p.Lasts < shortest || p.Lasts > 10*time.Second {
				t.Errorf("%s lasts %s", p.Fault.Name, p.Lasts)
			}
			all = append(all, p.Fault.Name+p.After.String()+p.Lasts.String())
		}
		return all
	}
	if !slices.Equal(names(7), names(7)) {
		t.Error("the same seed gives another sequence")
	}
	if slices.Equal(names(7), names(8)) {
		t.Error("another seed gives the same sequence")
	}
}

// sandboxOf is a target that consists of one process as a part.
func sandboxOf(t *testing.T, part string) (*Target, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	dir := t.TempDir()
	state := sandboxstate.State{Dir: dir, Supervisor: os.Getpid(), Parts: []sandboxstate.Part{{Name: part, PID: cmd.Process.Pid}}}
	if err := state.Write(); err != nil {
		t.Fatal(err)
	}
	return &Target{dir: dir}, cmd
}

// changes is what faults may change of a process: its memory cgroup, and pages of its vDSO.
func changes(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var all []string
	for _, name := range []string{"cgroup", "smaps"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	_, vdso, _ := strings.Cut(all[1], "[vdso]")
	_, written, _ := strings.Cut(vdso, "Anonymous:")
	written, _, _ = strings.Cut(written, "\n")
	return all[0] + written
}

// TestOtherProcessesGetNoSignal has a part that has ended, and whose id another process has by now.
func TestOtherProcessesGetNoSignal(t *testing.T) {
	target, cmd := sandboxOf(t, PartLifeboat)
	state, err := target.state()
	if err != nil {
		t.Fatal(err)
	}
	state.Supervisor = os.Getppid()
	if err := state.Write(); err != nil {
		t.Fatal(err)
	}
	if err := target.killAll(PartLifeboat); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"step-clock-lifeboatd", "oom-lifeboatd"} {
		f := fault(t, name)
		if f.Missing() != nil {
			continue
		}
		began := changes(t, cmd)
		if err := Run(t.Context(), target, f, 0, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now := changes(t, cmd); now != began {
			t.Errorf("%s changed a process that is not of the sandbox: %s\nbefore: %s", name, now, began)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if by := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGTERM {
		t.Errorf("a process that is not of the sandbox was ended by %s", by)
	}
}

func fault(t *testing.T, name string) Fault {
	t.Helper()
	f, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// stopped reports whether a process is stopped by a signal (proc(5), the third field of stat).
func stopped(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	text, err := exec.Command("ps", "-o", "state=", "-p", jsonOf(t, cmd.Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(strings.TrimSpace(string(text)), "T")
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// waitUntil waits for a condition of a process.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("timed out: " + what)
		}
	}
}

func TestFrozenPartContinues(t *testing.T) {
	t.Parallel()
	target, cmd := sandboxOf(t, "lifeboatd")
	undo, err := Start(t.Context(), target, fault(t, "freeze-lifeboatd"), time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "stopped", func() bool { return stopped(t, cmd) })
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "continued", func() bool { return !stopped(t, cmd) })
}

func TestKilledPartEnds(t *testing.T) {
	t.Parallel()
	target, cmd := sandboxOf(t, "lifeboatd-2")
	if err := Run(t.Context(), target, fault(t, "kill-lifeboatd"), time.Minute, 1); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended in order")
	}
}

func TestLinkFaultIsWrittenAndRemoved(t *testing.T) {
	t.Parallel()
	target, _ := sandboxOf(t, "lifeboatd")
	undo, err := Start(t.Context(), target, fault(t, "cut-lifeboatd-api"), time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Start(t.Context(), target, fault(t, "slow-lifeboatd-aws"), time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := link.Read(target.dir)
	if err != nil || !all["lifeboatd-api"].Cut || all["lifeboatd-aws"].Latency != slowBy {
		t.Errorf("conditions %+v, %v", all, err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if all, err = link.Read(target.dir); err != nil || len(all) != 1 {
		t.Errorf("conditions %+v, %v, want one", all, err)
	}
	if err := other(); err != nil {
		t.Fatal(err)
	}
}

func TestMissingPartIsAnError(t *testing.T) {
	t.Parallel()
	target, _ := sandboxOf(t, "lifeboatd")
	if _, err := Start(t.Context(), target, fault(t, "kill-karpenter"), time.Second, 1); err == nil || !strings.Contains(err.Error(), "no part karpenter") {
		t.Errorf("error %v", err)
	}
	for _, f := range target.Supported() {
		if f.Part == PartKarpenter {
			t.Errorf("%s is supported", f.Name)
		}
	}
}

// A sandbox that was removed needs no repair, and the repair does not wait for it.
func TestRepairOfRemovedSandbox(t *testing.T) {
	t.Parallel()
	target, _ := sandboxOf(t, "lifeboatd")
	undo, err := Start(t.Context(), target, fault(t, "cut-lifeboatd-api"), time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(target.dir); err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(target.dir, "none")); err == nil {
		t.Error("a sandbox that does not exist is opened")
	}
}

func TestVanishedNodeRegistersAsItsKubelet(t *testing.T) {
	t.Parallel()
	got := registered(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", ResourceVersion: "7",
			Labels:      map[string]string{"team": "web", corev1.LabelNodeExcludeBalancers: "", "lifeboat.dev/x": ""},
			Annotations: map[string]string{"lifeboat.dev/state": "{}", "theirs": "1"},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1", Unschedulable: true, Taints: []corev1.Taint{
			{Key: "lifeboat.dev/interrupted"}, {Key: "node.kubernetes.io/unschedulable"}, {Key: "theirs"},
		}},
	})
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "web"}, Annotations: map[string]string{"theirs": "1"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///z/i-1", Taints: []corev1.Taint{{Key: "theirs"}}},
	}
	if jsonOf(t, got) != jsonOf(t, want) {
		t.Errorf("registers %s, want %s", jsonOf(t, got), jsonOf(t, want))
	}
}
