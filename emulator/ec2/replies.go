package ec2

import (
	"maps"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// The members of EC2's answers (EC2 API Reference, Data types).

type stateReply struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

func stateToWire(s InstanceState) stateReply { return stateReply{s.Code(), string(s)} }

type tagReply struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagsToWire(tags map[string]string) wire.Set[tagReply] {
	var out wire.Set[tagReply]
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, tagReply{k, tags[k]})
	}
	return out
}

type groupReply struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type placementReply struct {
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Tenancy string `xml:"tenancy"`
	HostID  string `xml:"hostId,omitempty"`
}

func placementToWire(in Instance) placementReply {
	out := placementReply{in.Zone, zoneID(in.Zone), "default", in.HostID}
	if in.HostID != "" {
		out.Tenancy = "host"
	}
	return out
}

type reasonReply struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type instanceReply struct {
	ID             string               `xml:"instanceId"`
	ImageID        string               `xml:"imageId"`
	State          stateReply           `xml:"instanceState"`
	PrivateDNSName string               `xml:"privateDnsName"`
	DNSName        string               `xml:"dnsName"`
	Reason         string               `xml:"reason"`
	KeyName        string               `xml:"keyName,omitempty"`
	AMILaunchIndex int                  `xml:"amiLaunchIndex"`
	Type           string               `xml:"instanceType"`
	LaunchTime     wire.Time            `xml:"launchTime"`
	Placement      placementReply       `xml:"placement"`
	Monitoring     string               `xml:"monitoring>state"`
	SubnetID       string               `xml:"subnetId,omitempty"`
	VPCID          string               `xml:"vpcId,omitempty"`
	PrivateIP      string               `xml:"privateIpAddress,omitempty"`
	Groups         wire.Set[groupReply] `xml:"groupSet"`
	StateReason    *reasonReply         `xml:"stateReason"`
	Architecture   string               `xml:"architecture"`
	RootDeviceType string               `xml:"rootDeviceType"`
	RootDeviceName string               `xml:"rootDeviceName"`
	Virtualization string               `xml:"virtualizationType"`
	Hypervisor     string               `xml:"hypervisor"`
	Profile        *profileReply        `xml:"iamInstanceProfile"`
	Metadata       *metadataReply       `xml:"metadataOptions"`
	Volumes        wire.Set[diskReply]  `xml:"blockDeviceMapping"`
	Lifecycle      string               `xml:"instanceLifecycle,omitempty"`
	CapacityID     string               `xml:"capacityReservationId,omitempty"`
	CapacityChoice string               `xml:"capacityReservationSpecification>capacityReservationPreference"`
	SpotRequestID  string               `xml:"spotInstanceRequestId,omitempty"`
	ClientToken    string               `xml:"clientToken"`
	Tags           wire.Set[tagReply]   `xml:"tagSet"`
}

func instanceToWire(in Instance, index int) instanceReply {
	out := instanceReply{
		ID: in.ID, ImageID: in.ImageID, State: stateToWire(in.State), PrivateDNSName: shownDNSName(in),
		Reason: in.TransitionReason, KeyName: in.KeyName, AMILaunchIndex: index, Type: in.Type,
		LaunchTime: wire.Time{Time: in.LaunchTime}, Placement: placementToWire(in),
		Monitoring: "disabled", PrivateIP: shownIP(in), Architecture: in.Architecture(),
		RootDeviceType: "ebs", RootDeviceName: rootDevice, Virtualization: "hvm", Hypervisor: "xen",
		Lifecycle: in.Lifecycle(), CapacityID: in.CapacityReservationID, SpotRequestID: in.SpotRequestID, ClientToken: in.ClientToken,
		Tags: tagsToWire(in.Tags), Volumes: disksToWire(in), CapacityChoice: "open",
	}
	if in.Metadata != (MetadataOptions{}) {
		out.Metadata = metadataToWire(in.Metadata)
	}
	if in.InstanceProfileARN != "" {
		out.Profile = &profileReply{in.InstanceProfileARN, profileID(in.InstanceProfileARN)}
	}
	if in.State != Terminated {
		out.SubnetID, out.VPCID = in.SubnetID, vpcID
		for _, id := range in.SecurityGroupIDs {
			out.Groups = append(out.Groups, groupReply{id, groupName(id)})
		}
	}
	if in.StateReason.Code != "" {
		out.StateReason = &reasonReply{in.StateReason.Code, in.StateReason.Message}
	}
	return out
}

type reservationReply struct {
	ID        string                  `xml:"reservationId"`
	OwnerID   string                  `xml:"ownerId"`
	Groups    wire.Set[groupReply]    `xml:"groupSet"`
	Instances wire.Set[instanceReply] `xml:"instancesSet"`
}

// reservations groups instances, which are in launch order, by the call that launched them.
func reservations(list []Instance, owner string) wire.Set[reservationReply] {
	var out wire.Set[reservationReply]
	for _, in := range list {
		if n := len(out); n == 0 || out[n-1].ID != in.ReservationID {
			out = append(out, reservationReply{ID: in.ReservationID, OwnerID: owner})
		}
		r := &out[len(out)-1]
		r.Instances = append(r.Instances, instanceToWire(in, len(r.Instances)))
	}
	return out
}

type transitionReply struct {
	ID       string     `xml:"instanceId"`
	Current  stateReply `xml:"currentState"`
	Previous stateReply `xml:"previousState"`
}

type transitionsReply struct {
	Instances wire.Set[transitionReply] `xml:"instancesSet"`
}

func transitionsToWire(list []Transition) *transitionsReply {
	out := &transitionsReply{}
	for _, t := range list {
		out.Instances = append(out.Instances, transitionReply{t.ID, stateToWire(t.Current), stateToWire(t.Previous)})
	}
	return out
}

type statusDetailReply struct {
	Name          string    `xml:"name"`
	Status        string    `xml:"status"`
	ImpairedSince wire.Time `xml:"impairedSince"`
}

type statusReply struct {
	Status  string                      `xml:"status"`
	Details wire.Set[statusDetailReply] `xml:"details"`
}

func checkToWire(in Instance, set string) statusReply {
	status := check(in, set)
	detail := statusDetailReply{Name: "reachability", Status: reachability(status)}
	switch status {
	case StatusNotApplicable:
		return statusReply{Status: status}
	case StatusImpaired:
		detail.ImpairedSince = wire.Time{Time: in.Health.ImpairedSince}
	}
	return statusReply{status, wire.Set[statusDetailReply]{detail}}
}

type maintenanceReply struct {
	ID                string    `xml:"instanceEventId"`
	Code              string    `xml:"code"`
	Description       string    `xml:"description"`
	NotBefore         wire.Time `xml:"notBefore"`
	NotAfter          wire.Time `xml:"notAfter"`
	NotBeforeDeadline wire.Time `xml:"notBeforeDeadline"`
}

type instanceStatusReply struct {
	ID          string                     `xml:"instanceId"`
	Zone        string                     `xml:"availabilityZone"`
	Events      wire.Set[maintenanceReply] `xml:"eventsSet"`
	State       stateReply                 `xml:"instanceState"`
	System      statusReply                `xml:"systemStatus"`
	Instance    statusReply                `xml:"instanceStatus"`
	AttachedEBS statusReply                `xml:"attachedEbsStatus"`
}

func statusToWire(in Instance) instanceStatusReply {
	out := instanceStatusReply{
		ID: in.ID, Zone: in.Zone, State: stateToWire(in.State),
		System: checkToWire(in, in.Health.System), Instance: checkToWire(in, in.Health.Instance),
		AttachedEBS: checkToWire(in, in.Health.AttachedEBS),
	}
	for _, m := range in.Maintenance {
		out.Events = append(out.Events, maintenanceReply{
			m.ID, m.Code, m.Description,
			wire.Time{Time: m.NotBefore}, wire.Time{Time: m.NotAfter}, wire.Time{Time: m.NotBeforeDeadline},
		})
	}
	return out
}

type spotStatusReply struct {
	Code       string    `xml:"code"`
	Message    string    `xml:"message"`
	UpdateTime wire.Time `xml:"updateTime"`
}

type launchReply struct {
	ImageID string `xml:"imageId"`
	Type    string `xml:"instanceType"`
}

type spotRequestReply struct {
	ID         string             `xml:"spotInstanceRequestId"`
	Type       string             `xml:"type"`
	State      string             `xml:"state"`
	Status     spotStatusReply    `xml:"status"`
	Launch     launchReply        `xml:"launchSpecification"`
	InstanceID string             `xml:"instanceId"`
	CreateTime wire.Time          `xml:"createTime"`
	Product    string             `xml:"productDescription"`
	Zone       string             `xml:"launchedAvailabilityZone"`
	Behaviour  string             `xml:"instanceInterruptionBehavior"`
	Tags       wire.Set[tagReply] `xml:"tagSet"`
}

func spotRequestToWire(r SpotRequest) spotRequestReply {
	return spotRequestReply{
		ID: r.ID, Type: r.kind(), State: r.State,
		Status: spotStatusReply{r.Status.Code, r.Status.Message, wire.Time{Time: r.Status.UpdateTime}},
		Launch: launchReply{r.ImageID, r.InstanceType}, InstanceID: r.InstanceID,
		CreateTime: wire.Time{Time: r.CreateTime}, Product: productDescription, Zone: r.Zone,
		Behaviour: string(r.Behaviour), Tags: tagsToWire(r.Tags),
	}
}
