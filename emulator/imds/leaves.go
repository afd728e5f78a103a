package imds

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// tree holds all values of a service, by path without leading slash.
type tree map[string]string

// find returns what is at a path: a value, or the names below it, those with more
// below them ending in a slash.
func (t tree) find(path string) (string, bool) {
	if content, ok := t[path]; ok {
		return content, true
	}
	prefix := path + "/"
	if path == "" {
		prefix = ""
	}
	names := map[string]bool{}
	for leaf := range t {
		rest, below := strings.CutPrefix(leaf, prefix)
		if !below {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if deeper {
			name += "/"
		}
		names[name] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n"), len(names) > 0
}

// leaves is the tree of an instance. What does not apply is absent, and so answered 404 (EC2 User
// Guide, Instance metadata categories).
func (s *State) leaves(in ec2.Instance) tree {
	t := tree{
		"latest/dynamic/instance-identity/document": s.document(in),
	}
	put := func(path, value string) {
		if value != "" {
			t["latest/meta-data/"+path] = value
		}
	}
	put("ami-id", in.ImageID)
	put("hostname", in.PrivateDNSName)
	put("instance-id", in.ID)
	put("instance-life-cycle", lifecycle(in))
	put("instance-type", in.Type)
	put("local-hostname", in.PrivateDNSName)
	put("local-ipv4", in.PrivateIP)
	put("placement/availability-zone", in.Zone)
	put("placement/availability-zone-id", s.zoneID(in.Zone))
	put("placement/host-id", in.HostID)
	put("placement/region", s.scope.Region)
	put("reservation-id", in.ReservationID)
	put("services/domain", "amazonaws.com")
	put("services/partition", s.scope.Partition())
	put("autoscaling/target-lifecycle-state", s.targetState(in.ID))
	put("events/maintenance/scheduled", s.maintenance(in, true))
	put("events/maintenance/history", s.maintenance(in, false))
	s.spot(in, put)
	if s.setting(in.ID).Tags {
		for key, value := range in.Tags {
			// A key that is no single path element is not available.
			if !strings.ContainsAny(key, " /") {
				t["latest/meta-data/tags/instance/"+key] = value
			}
		}
	}
	if data, err := base64.StdEncoding.DecodeString(in.UserData); err == nil && len(data) > 0 {
		t["latest/user-data"] = string(data)
	}
	return t
}

const instant = "2006-01-02T15:04:05Z"

// spot adds the interruption data of a spot instance (EC2 User Guide, Spot Instance interruption
// notices and EC2 instance rebalance recommendations).
func (s *State) spot(in ec2.Instance, put func(path, value string)) {
	if !in.RebalanceAt.IsZero() {
		put("events/recommendations/rebalance", text(struct {
			NoticeTime string `json:"noticeTime"`
		}{s.scope.Clock.At(in.RebalanceAt).UTC().Format(instant)}))
	}
	if in.Notice.Action == "" {
		return
	}
	at := s.scope.Clock.At(in.Notice.Deadline).UTC().Format(instant)
	put("spot/instance-action", text(struct {
		Action ec2.Behaviour `json:"action"`
		Time   string        `json:"time"`
	}{in.Notice.Action, at}))
	if in.Notice.Action == ec2.Terminate {
		put("spot/termination-time", at)
	}
}

// event is a scheduled event as instance metadata writes it (EC2 User Guide, View
// scheduled events). Its times have no day of the week.
type event struct {
	NotBefore   string
	NotAfter    string `json:",omitempty"`
	Code        string
	Description string
	EventID     string `json:"EventId"`
	State       string
}

// maintenance lists scheduled events: pending or ended.
func (s *State) maintenance(in ec2.Instance, active bool) string {
	list := []event{}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return s.scope.Clock.At(t).UTC().Format("2 Jan 2006 15:04:05 GMT")
	}
	for _, m := range in.Maintenance {
		if (m.State == ec2.MaintenanceActive) == active {
			list = append(list, event{at(m.NotBefore), at(m.NotAfter), m.Code, m.Description, m.ID, string(m.State)})
		}
	}
	return text(list)
}

// document is the instance identity document (EC2 User Guide, Instance identity
// documents).
func (s *State) document(in ec2.Instance) string {
	return text(struct {
		AccountID        string    `json:"accountId"`
		Architecture     string    `json:"architecture"`
		AvailabilityZone string    `json:"availabilityZone"`
		ImageID          string    `json:"imageId"`
		InstanceID       string    `json:"instanceId"`
		InstanceType     string    `json:"instanceType"`
		PendingTime      time.Time `json:"pendingTime"`
		PrivateIP        string    `json:"privateIp"`
		Region           string    `json:"region"`
		Version          string    `json:"version"`
	}{
		s.scope.Account, "x86_64", in.Zone, in.ImageID, in.ID, in.Type, in.LaunchTime.UTC(), in.PrivateIP,
		s.scope.Region, "2017-09-30",
	})
}

// text encodes a struct or list of plain values, which always works.
func text(v any) string {
	b, err := wire.JSON(v)
	if err != nil {
		return ""
	}
	return string(b)
}
