package main

import (
	"context"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// controller attaches disks to instances, and answers as the EBS driver does
// (aws-ebs-csi-driver, pkg/driver/controller.go).
type controller struct {
	csi.UnimplementedControllerServer

	disks disks
	mu    sync.Mutex // one change at a time
}

func (*controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{Type: &csi.ControllerServiceCapability_Rpc{
		Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME},
	}}}}, nil
}

// ControllerPublishVolume attaches a volume. A repeated call succeeds. FailedPrecondition: another
// instance has the volume. NotFound: there is no such volume, or the instance is terminated.
func (c *controller) ControllerPublishVolume(_ context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if err := checkID("node", req.NodeId); err != nil {
		return nil, err
	}
	if req.VolumeCapability == nil {
		return nil, status.Error(codes.InvalidArgument, "the request has no capability")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, err := c.disks.attachedTo(req.VolumeId)
	if err != nil {
		return nil, err
	}
	gone, err := c.disks.terminated(req.NodeId)
	switch {
	case err != nil:
		return nil, err
	case gone:
		return nil, status.Errorf(codes.NotFound, "instance %s is terminated", req.NodeId)
	case at == req.NodeId:
		return &csi.ControllerPublishVolumeResponse{}, nil
	case at != "":
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s, and can be attached to one instance only", req.VolumeId, at)
	}
	if err := c.disks.attach(req.VolumeId, req.NodeId); err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// ControllerUnpublishVolume detaches a volume. It succeeds if the instance does not have it, or if
// there is no such volume.
func (c *controller) ControllerUnpublishVolume(_ context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch at, err := c.disks.attachedTo(req.VolumeId); {
	case status.Code(err) == codes.NotFound:
	case err != nil:
		return nil, err
	case req.NodeId == "" || at == req.NodeId:
		if err := c.disks.detach(req.VolumeId); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
