package main

import (
	"context"
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Name is the driver's name in CSIDriver and PersistentVolume objects.
const Name = "disks.sandbox.lifeboat.dev"

// identity says what the process is.
type identity struct {
	csi.UnimplementedIdentityServer

	controller bool
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Name, VendorVersion: "dev"}, nil
}

func (i identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	out := &csi.GetPluginCapabilitiesResponse{}
	if i.controller {
		out.Capabilities = []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
		}}}
	}
	return out, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrar makes the driver known to the kubelet, as node-driver-registrar does
// (kubernetes-csi/node-driver-registrar).
type registrar struct {
	registration.UnimplementedRegistrationServer

	endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: Name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus ends the process if the kubelet refused it, so that it is started and
// registered again.
func (registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintln(os.Stderr, "csi: the kubelet refused the registration:", s.Error)
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
