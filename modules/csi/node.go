package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mostDisks is how many disks an instance of the Nitro System takes beside its other attachments
// (EBS User Guide, "Amazon EBS volume limits"); the exact number is irrelevant here.
const mostDisks = 25

// node mounts the disks of one instance.
type node struct {
	csi.UnimplementedNodeServer

	disks    disks
	instance string
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.instance, MaxVolumesPerNode: mostDisks}, nil
}

func (*node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{
		Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	}}}}, nil
}

// NodeStageVolume mounts a disk once for all pods of the node. NotFound: it is not attached here, so
// that the instance has no such device.
func (n *node) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	at, err := n.disks.attachedTo(req.VolumeId)
	if err != nil {
		return nil, err
	}
	if at != n.instance {
		return nil, status.Errorf(codes.NotFound, "volume %s is not attached to this instance", req.VolumeId)
	}
	dir, err := n.disks.of(req.VolumeId)
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, bind(filepath.Join(dir, content), req.StagingTargetPath)
}

// NodeUnstageVolume unmounts it.
func (*node) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, unmount(req.StagingTargetPath)
}

// NodePublishVolume mounts a staged disk for a pod.
func (*node) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.StagingTargetPath == "" {
		return nil, status.Error(codes.FailedPrecondition, "the volume is not staged")
	}
	if req.Readonly {
		return nil, status.Error(codes.InvalidArgument, "this driver has no read-only mounts")
	}
	return &csi.NodePublishVolumeResponse{}, bind(req.StagingTargetPath, req.TargetPath)
}

// NodeUnpublishVolume unmounts it, and removes the directory that NodePublishVolume made.
func (*node) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unmount(req.TargetPath); err != nil {
		return nil, err
	}
	if err := os.Remove(req.TargetPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, internal("removing the mount point", err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// bind mounts a directory at another, unless it is mounted there.
func bind(from, to string) error {
	if to == "" {
		return status.Error(codes.InvalidArgument, "the request names no mount point")
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return internal("making the mount point", err)
	}
	source, err := os.Stat(from)
	if err != nil {
		return internal("reading the disk", err)
	}
	if target, err := os.Stat(to); err == nil && os.SameFile(source, target) {
		return nil
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return internal("mounting", err)
	}
	return nil
}

// unmount succeeds if nothing is mounted there.
func unmount(at string) error {
	if at == "" {
		return status.Error(codes.InvalidArgument, "the request names no mount point")
	}
	if err := unix.Unmount(at, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return internal("unmounting", err)
	}
	return nil
}
