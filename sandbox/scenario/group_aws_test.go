package scenario

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// made has an emulated AWS make a group, and returns its instances in their order.
func made(t *testing.T, st GroupStatement) (*emulator.States, []ec2.Instance) {
	t.Helper()
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go server.States.EC2.Run(t.Context())
	if err := MakeGroup(server.States, st); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	return server.States, server.States.EC2.Instances()
}

func TestGroupIsCreatedFromStatement(t *testing.T) {
	for line, judge := range map[string]func(t *testing.T, aws *emulator.States, all []ec2.Instance){
		"group web desired=2 boot=3s prepare=4s labels=a=b": func(t *testing.T, aws *emulator.States, all []ec2.Instance) {
			if len(all) != 2 {
				t.Fatalf("%d instances, want two", len(all))
			}
			flags, gated := machines.BootAgent(all[0])
			boot, _ := machines.BootTime(all[0], 0)
			prepare, _ := machines.PrepareTime(all[0])
			if !gated || len(flags) != 0 || boot != 3*time.Second || prepare != 4*time.Second {
				t.Errorf("agent %v %v, boot %s, prepare %s", gated, flags, boot, prepare)
			}
			node, err := machines.Node(all[0], machines.Where{})
			if err != nil || node.Labels["a"] != "b" || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "lifeboat.dev/not-in-service" {
				t.Errorf("node %+v, %v", node, err)
			}
			if m, _ := aws.AutoScaling.Member(all[0].ID); m.State != "Pending:Wait" {
				t.Errorf("it is %s, want it held by the launch hook", m.State)
			}
		},
		"group web agent=silent": func(t *testing.T, _ *emulator.States, all []ec2.Instance) {
			if flags, _ := machines.BootAgent(all[0]); strings.Join(flags, " ") != "--answer=false" {
				t.Errorf("flags %v", flags)
			}
		},
		"group web agent=none hooks=none spot warm=1": func(t *testing.T, aws *emulator.States, all []ec2.Instance) {
			if _, gated := machines.BootAgent(all[0]); gated || len(all) != 2 || !all[0].Spot() || all[1].Spot() {
				text, _ := base64.StdEncoding.DecodeString(all[0].UserData)
				t.Errorf("gated %v by %q; %d instances, the first one spot: %v", gated, text, len(all), all[0].Spot())
			}
			if m, _ := aws.AutoScaling.Member(all[1].ID); m.State != autoscaling.WarmedStopped {
				t.Errorf("the second is %s", m.State)
			}
		},
		"group web max=3 pool=running hooks=terminate": func(t *testing.T, aws *emulator.States, all []ec2.Instance) {
			warm := 0
			for _, m := range aws.AutoScaling.Members() {
				if m.State == autoscaling.WarmedRunning {
					warm++
				}
			}
			if len(all) != 3 || warm != 2 {
				t.Errorf("%d instances, %d warm", len(all), warm)
			}
		},
	} {
		t.Run(line, func(t *testing.T) {
			sc, err := Parse("x", []byte(archive(line+"\n")))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				aws, all := made(t, sc.Steps[0].Do.(GroupStatement))
				judge(t, aws, all)
			})
		})
	}
}
