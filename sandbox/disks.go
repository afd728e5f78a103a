package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

const disksPart = "disks"

// DiskDriver is the name of the CSI driver of Options.Disks (modules/csi).
const DiskDriver = "disks.sandbox.lifeboat.dev"

// Files in the directory of all disks, which the driver reads (modules/csi, disks.go).
const (
	diskContent         = "data"
	terminatedInstances = ".terminated"
)

// startDisks is the step of Up. It starts the driver's controller and csi-attacher. Instances start
// the driver's other half.
func (s *Sandbox) startDisks(ctx context.Context, detail func(string)) error {
	if err := os.MkdirAll(filepath.Join(s.disksDir(), terminatedInstances), 0o755); err != nil {
		return fmt.Errorf("making the directory of all disks: %w", err)
	}
	s.EC2().Subscribe(s.freeDisks)
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	attach := true
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: DiskDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach}}
	if _, err := client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the CSIDriver: %w", err)
	}
	// Its identity is that of a usual installation, its permissions are an administrator's.
	kubeconfig, err := s.cluster.UserKubeconfig("system:serviceaccount:kube-system:csi-attacher", "system:masters")
	if err != nil {
		return err
	}
	socket := s.path("csi.sock")
	for _, program := range []process.Options{
		{Name: "csi controller", Path: s.programs.CSI, Args: []string{"controller", "--disks=" + s.disksDir(), "--socket=" + socket}},
		{
			Name: "csi-attacher", Path: filepath.Join(filepath.Dir(s.programs.CSI), "csi-attacher"),
			Args: []string{"--kubeconfig=" + kubeconfig, "--csi-address=" + socket, "--v=2"},
		},
	} {
		if err := s.startDiskPart(ctx, program); err != nil {
			return err
		}
	}
	detail("CSI driver " + DiskDriver)
	return nil
}

func (s *Sandbox) startDiskPart(ctx context.Context, o process.Options) error {
	o.Dir, o.Env, o.LogFile = s.opts.Dir, bareEnv(), s.path(filepath.Base(o.Path)+".log")
	part := Part{Name: o.Name, Version: s.programs.CSIVersion, Log: o.LogFile}
	k := &supervisor{
		name: part.Name, log: s.log, started: func(pid int) { s.partStarted(part, pid) },
		launch: func(ctx context.Context) (*process.Process, error) { return process.Start(ctx, o) },
	}
	s.disks = append(s.disks, k)
	return k.start(ctx)
}

// freeDisks marks a terminated instance: EC2 detaches its volumes. A user can detach a volume
// "explicitly or by terminating the instance" (EBS User Guide, "Detach an Amazon EBS volume from an
// Amazon EC2 instance"). A stopped instance keeps them.
func (s *Sandbox) freeDisks(c ec2.Change) {
	if c.What != ec2.WasTerminated {
		return
	}
	if err := os.WriteFile(filepath.Join(s.disksDir(), terminatedInstances, c.Instance.ID), nil, 0o600); err != nil {
		s.log.Warn("volumes of a terminated instance not detached", "instance", c.Instance.ID, "err", err)
	}
}

// MakeDisk makes an empty disk; volume handles in PersistentVolumes of DiskDriver name it.
// Options.Disks must be set. It fails if there is such a disk.
func (s *Sandbox) MakeDisk(id string) error {
	content := s.DiskContent(id)
	for _, dir := range []string{filepath.Dir(content), content} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making the disk %s: %w", id, err)
		}
	}
	return nil
}

// DiskContent is the directory with the files of a disk.
func (s *Sandbox) DiskContent(id string) string { return filepath.Join(s.disksDir(), id, diskContent) }

func (s *Sandbox) disksDir() string { return filepath.Join(s.SharedDir(), instances.Disks) }
