package machines

import (
	"context"
	"encoding/base64"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

func userData(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestUserDataStartsBootAgent(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		flags      []string
		ok         bool
	}{
		{"none", "", nil, false},
		{"a script without it", "#!/bin/sh\nlifeboatd agent\n", nil, false},
		{"a script", "#!/bin/sh\nlifeboatd agent boot\n", []string{}, true},
		{"with flags", "#!/bin/sh\n/usr/local/bin/lifeboatd agent boot --answer=false --hooks=a,b\n", []string{"--answer=false", "--hooks=a,b"}, true},
		{"in a unit, with a path that is no flag", "ExecStart=/usr/bin/lifeboatd agent boot --answer x\n", []string{"--answer"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			flags, ok := BootAgent(ec2.Instance{UserData: userData(tc.text)})
			if ok != tc.ok || !cmp.Equal(flags, tc.flags) {
				t.Errorf("BootAgent() = %v, %v, want %v, %v", flags, ok, tc.flags, tc.ok)
			}
		})
	}
	if _, ok := BootAgent(ec2.Instance{UserData: "%"}); ok {
		t.Error("unreadable user data starts it")
	}
}

func TestDurationsAreParsed(t *testing.T) {
	in := ec2.Instance{ID: "i-1", Tags: map[string]string{TagBootTime: "20s", TagPrepareTime: "soon"}}
	if d, err := BootTime(in, time.Second); err != nil || d != 20*time.Second {
		t.Errorf("BootTime() = %s, %v", d, err)
	}
	if d, err := BootTime(ec2.Instance{}, time.Second); err != nil || d != time.Second {
		t.Errorf("BootTime() of one without a tag = %s, %v", d, err)
	}
	want := `instance i-1: tag lifeboat.dev/prepare-time is "soon": write a duration such as 20s`
	if _, err := PrepareTime(in); err == nil || err.Error() != want {
		t.Errorf("PrepareTime() = %v, want %s", err, want)
	}
	in.Tags[TagBootTime] = "-1s"
	if _, err := Node(in, Where{}); err == nil {
		t.Error("a machine that boots before its launch registers")
	}
}

// TestGatedKubeletRunsWhileGateIsOpen is an instance whose kubelet starts,
// stops and starts within one boot. The next boot closes the gate.
func TestGatedKubeletRunsWhileGateIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := ec2.New(ec2.Options{})
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go cloud.Run(ctx)
		gates := NewGates(cloud, func(in ec2.Instance) bool { _, ok := BootAgent(in); return ok })
		stop := run(ctx, t, gates, client)
		made, err := cloud.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, UserData: userData("lifeboatd agent boot")})
		if err != nil {
			t.Fatal(err)
		}
		id, name := made[0].ID, made[0].PrivateDNSName
		after := func(what string, want bool) *corev1.Node {
			t.Helper()
			time.Sleep(3 * time.Second)
			n := get(ctx, client, name)
			if got := n != nil && managed(n); got != want {
				t.Errorf("%s: its kubelet runs: %v, want %v", what, got, want)
			}
			return n
		}
		after("at boot", false)
		boot := func() string { in, _ := cloud.Instance(id); return in.BootID }
		gates.Open(id, "an earlier boot")
		after("for an earlier boot", false)
		gates.Open(id, boot())
		if n := after("open", true); n.Status.NodeInfo.BootID != boot() {
			t.Errorf("boot id %s, want %s", n.Status.NodeInfo.BootID, boot())
		}
		remove := func() {
			if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		remove()
		after("a user deleted its Node", false) // and it does not register again
		gates.Shut(id)
		after("shut", false)
		gates.Open(id, boot())
		after("open again", true)
		if _, err := cloud.Stop([]string{id}); err != nil {
			t.Error(err)
		}
		after("stopped", false)
		remove()
		if _, err := cloud.Start([]string{id}); err != nil {
			t.Error(err)
		}
		after("started: the gate is closed at boot", false)
		gates.Open(id, boot())
		after("open in the new boot", true)
		stop()
		cancel()
		synctest.Wait()
	})
}
