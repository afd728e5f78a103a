package sandbox

import (
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// anAgent replaces lifeboatd: it records its boots on its disk, starts the kubelet with the given
// command, and waits.
const anAgent = `#!/bin/sh
for arg in "$@"; do
	case "$arg" in
	--state-dir=*) disk="${arg#--state-dir=}" ;;
	--start=*) start="${arg#--start=}" ;;
	--active=*) active="${arg#--active=}" ;;
	esac
done
if sh -c "$active"; then echo "the kubelet runs already" >&2; exit 1; fi
echo "$AWS_EC2_METADATA_SERVICE_ENDPOINT" >> "$disk/boots"
sh -c "$start"
exec sleep 60
`

// newBootAgentsOf makes bootAgents of a sandbox that has only an emulator.
func newBootAgentsOf(t *testing.T) *bootAgents {
	t.Helper()
	program := filepath.Join(t.TempDir(), "lifeboatd")
	if err := os.WriteFile(program, []byte(anAgent), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := newCloud(Options{Account: "123456789012", Region: "us-east-1"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &Sandbox{cloud: c, log: slog.New(slog.NewTextHandler(t.Output(), nil)), opts: Options{Dir: t.TempDir(), Lifeboatd: program, BootDelay: time.Millisecond}}
	s.state.Dir = s.opts.Dir
	i := newBootAgents(s)
	i.kubeconfig = func(string) (string, error) { return "", nil }
	i.start()
	t.Cleanup(func() {
		if err := i.stop(); err != nil {
			t.Error(err)
		}
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return i
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestMachineKeepsDiskAcrossStop(t *testing.T) {
	t.Parallel()
	i := newBootAgentsOf(t)
	cloud := i.s.EC2()
	script := base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\nlifeboatd agent boot\n"))
	made, err := cloud.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, UserData: script})
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	runs := func() bool { return i.gates.Instances()[0].Powered }
	boots := func() int {
		text, _ := os.ReadFile(filepath.Join(i.disk(id), "boots"))
		return strings.Count(string(text), "http://127.0.0.1:")
	}
	eventually(t, "the kubelet starts at boot", runs)
	if _, err := cloud.Stop([]string{id}); err != nil {
		t.Fatal(err)
	}
	cloud.Halted(id) // no operator reports it here
	eventually(t, "it ends with the power", func() bool { return !runs() })
	eventually(t, "stopped", func() bool { in, _ := cloud.Instance(id); return in.State == ec2.Stopped })
	if n := boots(); n != 1 {
		t.Errorf("the disk of a stopped machine has %d boots, want one", n)
	}
	if _, err := cloud.Start([]string{id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kubelet starts again", runs)
	if n := boots(); n != 2 {
		t.Errorf("%d boots on its disk, want two", n)
	}
	if err := cloud.Reboot([]string{id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a reboot", func() bool { return boots() == 3 && runs() })
	if _, err := cloud.Terminate([]string{id}); err != nil {
		t.Fatal(err)
	}
	cloud.Halted(id)
	eventually(t, "its disk is deleted with it", func() bool {
		_, err := os.Stat(i.path(id))
		return os.IsNotExist(err)
	})
}

func TestHibernatedMachineResumes(t *testing.T) {
	t.Parallel()
	i := newBootAgentsOf(t)
	cloud := i.s.EC2()
	script := base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\nlifeboatd agent boot\n"))
	made, err := cloud.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, UserData: script})
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	runs := func() bool { return i.gates.Instances()[0].Powered }
	eventually(t, "the kubelet starts at boot", runs)
	if _, err := cloud.Hibernate([]string{id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "stopped", func() bool { in, _ := cloud.Instance(id); return in.State == ec2.Stopped && !runs() })
	if _, err := cloud.Start([]string{id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it resumes without a boot", runs)
	if text, _ := os.ReadFile(filepath.Join(i.disk(id), "boots")); strings.Count(string(text), "\n") != 1 {
		t.Errorf("boots:\n%s, want one", text)
	}
}
