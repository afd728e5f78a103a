package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// world is a controller of one disk, "data".
type world struct {
	t   *testing.T
	dir string
	c   *controller
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Join("data", content), terminated} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &world{t, dir, &controller{disks: disks{dir: dir}}}
}

func (w *world) terminate(instance string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, terminated, instance), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) publish(volume, instance string, want codes.Code) {
	w.t.Helper()
	_, err := w.c.ControllerPublishVolume(w.t.Context(), &csi.ControllerPublishVolumeRequest{
		VolumeId: volume, NodeId: instance, VolumeCapability: &csi.VolumeCapability{},
	})
	if status.Code(err) != want {
		w.t.Errorf("attaching %s to %s: %v, want %s", volume, instance, err, want)
	}
}

func (w *world) unpublish(volume, instance string) {
	w.t.Helper()
	_, err := w.c.ControllerUnpublishVolume(w.t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: instance})
	if err != nil {
		w.t.Errorf("detaching %s from %s: %v", volume, instance, err)
	}
}

func (w *world) attachedTo(want string) {
	w.t.Helper()
	if got, err := w.c.disks.attachedTo("data"); err != nil || got != want {
		w.t.Errorf("attached to %q (%v), want %q", got, err, want)
	}
}

func TestOneInstanceHasADisk(t *testing.T) {
	w := newWorld(t)
	w.publish("data", "i-1", codes.OK)
	w.publish("data", "i-1", codes.OK)
	w.publish("data", "i-2", codes.FailedPrecondition)
	w.attachedTo("i-1")
	w.unpublish("data", "i-2") // it does not have it
	w.attachedTo("i-1")
	w.unpublish("data", "i-1")
	w.unpublish("data", "i-1")
	w.publish("data", "i-2", codes.OK)
	w.attachedTo("i-2")
}

func TestTerminatedInstanceLosesItsDisks(t *testing.T) {
	w := newWorld(t)
	w.publish("data", "i-1", codes.OK)
	w.terminate("i-1")
	w.attachedTo("")
	w.publish("data", "i-1", codes.NotFound)
	w.publish("data", "i-2", codes.OK)
	w.unpublish("data", "i-1") // Kubernetes detaches it later
	w.attachedTo("i-2")
}

func TestRequestsAreChecked(t *testing.T) {
	w := newWorld(t)
	for volume, want := range map[string]codes.Code{
		"": codes.InvalidArgument, "..": codes.InvalidArgument, "a/b": codes.InvalidArgument, terminated: codes.InvalidArgument, "other": codes.NotFound,
	} {
		w.publish(volume, "i-1", want)
	}
	w.publish("data", "", codes.InvalidArgument)
	w.publish("data", "../../x", codes.InvalidArgument)
	w.unpublish("other", "i-1") // it is gone
}

func TestDiskIsMountedOnlyWhereItIsAttached(t *testing.T) {
	w := newWorld(t)
	n := &node{disks: w.c.disks, instance: "i-2"}
	stage := func() codes.Code {
		_, err := n.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "data", StagingTargetPath: filepath.Join(w.dir, "data", content)})
		return status.Code(err)
	}
	if got := stage(); got != codes.NotFound {
		t.Errorf("a detached disk: %s", got)
	}
	w.publish("data", "i-1", codes.OK)
	if got := stage(); got != codes.NotFound {
		t.Errorf("a disk of another instance: %s", got)
	}
	w.unpublish("data", "i-1")
	w.publish("data", "i-2", codes.OK)
	if got := stage(); got != codes.OK { // it is mounted there already
		t.Errorf("an attached disk: %s", got)
	}
}

// TestKubeletFindsTheDriver calls both sockets as the kubelet does.
func TestKubeletFindsTheDriver(t *testing.T) {
	w, kubelet := newWorld(t), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"node", "--disks=" + w.dir, "--instance=i-1", "--kubelet=" + kubelet})
	}()

	dial := func(socket string) *grpc.ClientConn {
		c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	registrar := registration.NewRegistrationClient(dial(filepath.Join(kubelet, "plugins_registry", Name+"-reg.sock")))
	info, err := registrar.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil || info.Type != registration.CSIPlugin || info.Name != Name {
		t.Fatalf("it registers as %v (%v)", info, err)
	}
	got, err := csi.NewNodeClient(dial(info.Endpoint)).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil || got.NodeId != "i-1" {
		t.Errorf("the node is %v (%v)", got, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
