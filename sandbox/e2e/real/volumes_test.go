//go:build e2e

package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// TestVolumes moves the volume of a StatefulSet's pod to another node, with a real attach-detach
// controller, csi-attacher, CSI driver and kubelets.
func TestVolumes(t *testing.T) {
	needWorld(t)
	t.Run("a drained pod's volume is unmounted, and follows it", volumeFollowsPod)
	t.Run("a stopped instance: the taint detaches its volume", func(t *testing.T) {
		volumeLeavesDeadNode(t, "stopped", func(s *stage, id string) error {
			_, err := s.EC2().Stop([]string{id})
			return err
		}, ec2.Stopped)
	})
	t.Run("a terminated instance: the taint detaches its volume", func(t *testing.T) {
		volumeLeavesDeadNode(t, "terminated", func(s *stage, id string) error {
			_, err := s.EC2().Terminate([]string{id})
			return err
		}, ec2.Terminated)
	})
}

// volumeFollowsPod reclaims the node of a pod with the full notice.
func volumeFollowsPod(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	d := database{Name: "disk-drained"}
	interrupted := s.interrupted(d.Name)
	s.policy(d.Name, evict)
	before := s.runDatabase(d, interrupted)
	l := s.follow(d, interrupted)

	s.reclaim(interrupted, 0) // two minutes
	s.untilMoved(d, l)
	l.inOrder(t, unmounted, detached, attached, running)
	l.inOrder(t, deleted, attached) // the kubelet may unmount before it confirms the pod's end
	if l.has(tainted) {
		t.Errorf("the drained node has the out-of-service taint")
	}
	s.checkData(d, before)
}

// volumeLeavesDeadNode cuts the power of the instance of a pod, whose kubelet unmounts nothing.
func volumeLeavesDeadNode(t *testing.T, name string, end func(*stage, string) error, state ec2.InstanceState) {
	t.Parallel()
	s := needWorld(t)
	d := database{Name: "disk-" + name, IgnoresSIGTERM: true}
	interrupted := s.onDemand(d.Name)
	before := s.runDatabase(d, interrupted)
	l := s.follow(d, interrupted)

	s.cutPower(interrupted, end)
	s.until("the taint", 3*time.Minute, func(context.Context) (bool, error) {
		return l.has(tainted), errors.Join(l.err(), fmt.Errorf("so far: %s", l))
	})
	if got := s.state(interrupted); got != state {
		t.Errorf("the Node is tainted although EC2 says that its instance is %s", got)
	}
	s.untilMoved(d, l)
	l.inOrder(t, tainted, detached, attached, running)
	if l.has(unmounted) {
		t.Errorf("the kubelet unmounted the volume: the setup cannot show a forced detach")
	}
	s.checkData(d, before)
}

// volumeStays is volumeLeavesDeadNode without Lifeboat. Kubernetes waits for the dead kubelet for six
// minutes (kubernetes pkg/controller/volume/attachdetach, ReconcilerMaxWaitForUnmountDuration), which
// no flag changes. So the test ends the wait with the taint, as a person does. EC2 has detached the
// volume of the terminated instance meanwhile, so that only the VolumeAttachment delays the pod.
func volumeStays(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	d := database{Name: "disk-alone", IgnoresSIGTERM: true}
	interrupted := s.onDemand(d.Name)
	before := s.runDatabase(d, interrupted)
	l := s.follow(d, interrupted)

	s.cutPower(interrupted, func(s *stage, id string) error {
		_, err := s.EC2().Terminate([]string{id})
		return err
	})
	s.until("the instance to be terminated", time.Minute, func(context.Context) (bool, error) {
		return s.state(interrupted) == ec2.Terminated, nil
	})
	s.patchNode(interrupted, `[{"op":"add","path":"/spec/unschedulable","value":true}]`)
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "default", d.pod()
	if err := s.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	s.until("Kubernetes to refuse the successor the volume", 3*time.Minute, func(ctx context.Context) (bool, error) {
		var events corev1.EventList
		err := s.client.List(ctx, &events, client.InNamespace("default"), client.MatchingFields{"involvedObject.name": d.pod()})
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, "Multi-Attach error") }), err
	})
	s.sleep(10 * time.Second) // a detach would show
	if l.has(detached) || l.has(attached) || l.has(running) {
		t.Errorf("the volume moved without the taint: %s", l)
	}
	s.patchNode(interrupted, `[{"op":"add","path":"/spec/taints/-","value":{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}}]`)
	s.untilMoved(d, l)
	l.inOrder(t, deleted, tainted, detached, attached, running)
	s.checkData(d, before)
}

// onDemand boots a node whose Node object stays after a termination. The sandbox would delete it as
// soon as it is not Ready, a cloud controller manager within its --node-monitor-period, five seconds.
// Without the Node, Kubernetes sees no taint and waits six minutes.
func (s *stage) onDemand(pool string) ec2.Instance {
	s.t.Helper()
	in, err := s.boot(pool, nil, machines.TagKeepNode, "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_, err := s.EC2().Terminate([]string{in.ID})
		node := &corev1.Node{}
		node.Name = in.PrivateDNSName
		s.check(err, client.IgnoreNotFound(s.client.Delete(context.Background(), node)))
	})
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.waitReady(ctx, in); err != nil {
		s.t.Fatal(err)
	}
	return in
}

// cutPower ends an instance without its operating system (EC2 API Reference, TerminateInstances,
// SkipOsShutdown).
func (s *stage) cutPower(in ec2.Instance, end func(*stage, string) error) {
	s.t.Helper()
	if err := end(s, in.ID); err != nil {
		s.t.Fatal(err)
	}
	s.EC2().SkipShutdown([]string{in.ID})
	s.waitPowerOff(in, time.Minute)
}

func (s *stage) state(in ec2.Instance) ec2.InstanceState {
	s.t.Helper()
	all, err := s.EC2().Describe([]string{in.ID}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return all[0].State
}

func (s *stage) patchNode(in ec2.Instance, patch string) {
	s.t.Helper()
	node := &corev1.Node{}
	node.Name = in.PrivateDNSName
	if err := s.client.Patch(s.t.Context(), node, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}

// runDatabase runs a pod with a disk on a node, and returns what it has written there.
func (s *stage) runDatabase(d database, on ec2.Instance) string {
	s.t.Helper()
	if err := s.MakeDisk(d.Name); err != nil {
		s.t.Fatal(err)
	}
	s.apply(d.objects()...)
	s.until(d.pod()+" to run on its node", 3*time.Minute, func(ctx context.Context) (bool, error) {
		pods, err := s.pods(ctx, d.Name)
		return len(pods) == 1 && isReady(&pods[0]) && pods[0].Spec.NodeName == on.PrivateDNSName, errors.Join(err, errors.New(states(pods)))
	})
	var text string
	s.until("data on the disk", time.Minute, func(context.Context) (bool, error) {
		var err error
		text, err = s.readDisk(d)
		return starts(text) == 1, err
	})
	return text
}

func (s *stage) readDisk(d database) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.DiskContent(d.Name), diskJournal))
	return string(text), err
}

// starts counts the containers that have written to a disk.
func starts(text string) int { return strings.Count(text, `"what":"started"`) }

func (s *stage) untilMoved(d database, l *timeline) {
	s.t.Helper()
	s.until("the successor of "+d.pod()+" to run", 4*time.Minute, func(ctx context.Context) (bool, error) {
		if err := l.err(); err != nil {
			return false, err
		}
		pods, err := s.pods(ctx, d.Name)
		return l.has(running), errors.Join(err, fmt.Errorf("%s; %s", states(pods), l))
	})
	s.t.Logf("FIGURES %s: %s", s.t.Name(), l)
}

// checkData checks that the successor found the data of the first pod, and wrote behind it.
func (s *stage) checkData(d database, before string) {
	s.t.Helper()
	after, err := s.readDisk(d)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.HasPrefix(after, before) || starts(after) != 2 {
		s.t.Errorf("the disk had\n%s\nand now has\n%s", before, after)
	}
}
