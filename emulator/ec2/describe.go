package ec2

import (
	"slices"
	"strconv"
	"time"
)

// Describe lists instances by id (all, if none is given) and filters, oldest first.
// Errors: InvalidInstanceID.NotFound, InvalidInstanceID.Malformed,
// InvalidParameterValue for an unknown filter.
func (s *State) Describe(ids []string, filters []Filter) ([]Instance, error) {
	list, err := s.pick(ids)
	if err != nil {
		return nil, err
	}
	return filtered(list, filters, func(in Instance) map[string]string { return in.Tags }, s.instanceFields())
}

// pick returns the instances with the given ids, or all, as the replicas have them, in the order of
// their launch.
func (s *State) pick(ids []string) ([]Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(ids); err != nil {
		return nil, err
	}
	list := s.seen(ids)
	if missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.ContainsFunc(list, func(in Instance) bool { return in.ID == id })
	}); len(missing) > 0 {
		return nil, instancesNotFound(missing)
	}
	return list, nil
}

// seen lists the instances with the given ids, or all, that the replicas have. It needs the lock.
func (s *State) seen(ids []string) []Instance {
	var out []Instance
	for _, id := range s.order {
		if len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		if in, ok := s.replicas.Get(id); ok {
			out = append(out, in.clone())
		}
	}
	return out
}

func (s *State) instanceFields() map[string]field[Instance] {
	text := func(f func(Instance) string) field[Instance] { return one(f) }
	return map[string]field[Instance]{
		"architecture":             text(Instance.Architecture),
		"availability-zone":        text(func(in Instance) string { return in.Zone }),
		"capacity-reservation-id":  text(func(in Instance) string { return in.CapacityReservationID }),
		"client-token":             text(func(in Instance) string { return in.ClientToken }),
		"host-id":                  text(func(in Instance) string { return in.HostID }),
		"iam-instance-profile.arn": text(func(in Instance) string { return in.InstanceProfileARN }),
		"image-id":                 text(func(in Instance) string { return in.ImageID }),
		"instance-id":              text(func(in Instance) string { return in.ID }),
		"instance-lifecycle":       text(Instance.Lifecycle),
		"instance-state-code":      text(func(in Instance) string { return strconv.Itoa(in.State.Code()) }),
		"instance-state-name":      text(func(in Instance) string { return string(in.State) }),
		"instance-type":            text(func(in Instance) string { return in.Type }),
		"instance.group-id":        func(in Instance) []string { return in.SecurityGroupIDs },
		"key-name":                 text(func(in Instance) string { return in.KeyName }),
		"launch-time":              text(func(in Instance) string { return in.LaunchTime.Format("2006-01-02T15:04:05.000Z") }),
		"owner-id":                 text(func(Instance) string { return s.scope.Account }),
		"private-dns-name":         text(shownDNSName),
		"private-ip-address":       text(shownIP),
		"reservation-id":           text(func(in Instance) string { return in.ReservationID }),
		"spot-instance-request-id": text(func(in Instance) string { return in.SpotRequestID }),
		"state-reason-code":        text(func(in Instance) string { return in.StateReason.Code }),
		"subnet-id":                text(func(in Instance) string { return in.SubnetID }),
		"vpc-id":                   text(func(Instance) string { return vpcID }),
	}
}

const productDescription = "Linux/UNIX"

// shownDNSName is empty when the instance no longer runs.
func shownDNSName(in Instance) string {
	if in.State == Pending || in.State == Running {
		return in.PrivateDNSName
	}
	return ""
}

// shownIP is empty once the instance has lost its network interface.
func shownIP(in Instance) string {
	if in.State == Terminated {
		return ""
	}
	return in.PrivateIP
}

// DescribeStatus lists instances with their status checks and scheduled events: the
// running ones only, unless all is set. Errors as for Describe.
func (s *State) DescribeStatus(ids []string, filters []Filter, all bool) ([]Instance, error) {
	list, err := s.pick(ids)
	if err != nil {
		return nil, err
	}
	if !all {
		list = slices.DeleteFunc(list, func(in Instance) bool { return in.State != Running })
	}
	return filtered(list, filters, func(Instance) map[string]string { return nil }, statusFields())
}

func statusFields() map[string]field[Instance] {
	events := func(f func(Maintenance) string) field[Instance] {
		return func(in Instance) []string {
			var out []string
			for _, m := range in.Maintenance {
				if v := f(m); v != "" {
					out = append(out, v)
				}
			}
			return out
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	text := func(f func(Instance) string) field[Instance] { return one(f) }
	return map[string]field[Instance]{
		"availability-zone":            text(func(in Instance) string { return in.Zone }),
		"event.code":                   events(func(m Maintenance) string { return m.Code }),
		"event.description":            events(func(m Maintenance) string { return m.Description }),
		"event.instance-event-id":      events(func(m Maintenance) string { return m.ID }),
		"event.not-before":             events(func(m Maintenance) string { return at(m.NotBefore) }),
		"event.not-after":              events(func(m Maintenance) string { return at(m.NotAfter) }),
		"event.not-before-deadline":    events(func(m Maintenance) string { return at(m.NotBeforeDeadline) }),
		"instance-state-code":          text(func(in Instance) string { return strconv.Itoa(in.State.Code()) }),
		"instance-state-name":          text(func(in Instance) string { return string(in.State) }),
		"instance-status.status":       text(func(in Instance) string { return check(in, in.Health.Instance) }),
		"instance-status.reachability": text(func(in Instance) string { return reachability(check(in, in.Health.Instance)) }),
		"operator.managed":             text(func(Instance) string { return "false" }),
		"system-status.status":         text(func(in Instance) string { return check(in, in.Health.System) }),
		"system-status.reachability":   text(func(in Instance) string { return reachability(check(in, in.Health.System)) }),
		"attached-ebs-status.status":   text(func(in Instance) string { return check(in, in.Health.AttachedEBS) }),
	}
}

// DescribeSpotRequests lists spot requests by id (all, if none is given) and filters,
// oldest first. Errors: InvalidSpotInstanceRequestID.NotFound, InvalidParameterValue
// for an unknown filter.
func (s *State) DescribeSpotRequests(ids []string, filters []Filter) ([]SpotRequest, error) {
	list := s.seenRequests()
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(r SpotRequest) bool { return r.ID == id }) {
			return nil, spotRequestNotFound(id)
		}
	}
	if len(ids) > 0 {
		list = slices.DeleteFunc(list, func(r SpotRequest) bool { return !slices.Contains(ids, r.ID) })
	}
	text := func(f func(SpotRequest) string) field[SpotRequest] { return one(f) }
	return filtered(list, filters, func(r SpotRequest) map[string]string { return r.Tags }, map[string]field[SpotRequest]{
		"instance-id":                text(func(r SpotRequest) string { return r.InstanceID }),
		"launch.image-id":            text(func(r SpotRequest) string { return r.ImageID }),
		"launch.instance-type":       text(func(r SpotRequest) string { return r.InstanceType }),
		"create-time":                text(func(r SpotRequest) string { return r.CreateTime.Format("2006-01-02T15:04:05.000Z") }),
		"product-description":        text(func(SpotRequest) string { return productDescription }),
		"status-message":             text(func(r SpotRequest) string { return r.Status.Message }),
		"launched-availability-zone": text(func(r SpotRequest) string { return r.Zone }),
		"spot-instance-request-id":   text(func(r SpotRequest) string { return r.ID }),
		"state":                      text(func(r SpotRequest) string { return r.State }),
		"status-code":                text(func(r SpotRequest) string { return r.Status.Code }),
		"type":                       text(func(r SpotRequest) string { return r.kind() }),
	})
}

func (r SpotRequest) kind() string {
	if r.Persistent {
		return "persistent"
	}
	return "one-time"
}
