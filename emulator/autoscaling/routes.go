package autoscaling

import (
	"context"
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is the Auto Scaling API. It ignores unknown parameters, and rejects known parameters that
// it does not support.
func Service(s *State) wire.Service {
	a := &api{state: s}
	actions := map[string]wire.Action{
		"AttachInstances":                     wire.Do(a.attach),
		"CancelInstanceRefresh":               wire.Do(a.cancelRefresh),
		"CompleteLifecycleAction":             wire.Do(a.complete),
		"CreateOrUpdateTags":                  wire.Do(a.putTags),
		"DeleteAutoScalingGroup":              wire.Do(a.deleteGroup),
		"DeleteLifecycleHook":                 wire.Do(a.deleteHook),
		"DeleteTags":                          wire.Do(a.deleteTags),
		"DeleteWarmPool":                      wire.Do(a.deletePool),
		"DetachInstances":                     wire.Do(a.detach),
		"EnterStandby":                        wire.Do(a.enterStandby),
		"ExitStandby":                         wire.Do(a.exitStandby),
		"LaunchInstances":                     wire.Do(a.launch),
		"PutLifecycleHook":                    wire.Do(a.putHook),
		"PutWarmPool":                         wire.Do(a.putPool),
		"RecordLifecycleActionHeartbeat":      wire.Do(a.heartbeat),
		"ResumeProcesses":                     wire.Do(a.resume),
		"SetDesiredCapacity":                  wire.Do(a.setDesired),
		"SetInstanceHealth":                   wire.Do(a.setHealth),
		"SetInstanceProtection":               wire.Do(a.protect),
		"StartInstanceRefresh":                wire.Do(a.startRefresh),
		"SuspendProcesses":                    wire.Do(a.suspend),
		"TerminateInstanceInAutoScalingGroup": wire.Do(a.terminate),
		"UpdateAutoScalingGroup":              wire.Do(a.updateGroup),
	}
	for name, action := range actions {
		actions[name] = s.ownersOnly(action)
	}
	for name, action := range map[string]wire.Action{
		"CreateAutoScalingGroup":       wire.Do(a.createGroup),
		"DescribeAutoScalingGroups":    wire.Do(a.describeGroups),
		"DescribeAutoScalingInstances": wire.Do(a.describeInstances),
		"DescribeInstanceRefreshes":    wire.Do(a.describeRefreshes),
		"DescribeLifecycleHooks":       wire.Do(a.describeHooks),
		"DescribeScalingActivities":    wire.Do(a.describeActivities),
		"DescribeTags":                 wire.Do(a.describeTags),
		"DescribeWarmPool":             wire.Do(a.describePool),
	} {
		actions[name] = action
	}
	return wire.Service{
		Name:         "autoscaling",
		Protocol:     wire.Query,
		XMLNamespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/",
		Background:   s.Run,
		Resource:     s.resource,
		Accesses:     s.accesses,
		Draws:        draws,
		Actions:      actions,
	}
}

// ownersOnly rejects changes to a group with an operator: callers of the emulator are never the
// operator (Amazon EC2 Auto Scaling API Reference, Operator).
func (s *State) ownersOnly(action wire.Action) wire.Action {
	return func(ctx context.Context, r *wire.Request) (any, error) {
		if operator := s.operator(s.subject(r)); operator != "" {
			return nil, &wire.Error{
				Status: http.StatusForbidden, Code: "AccessDeniedException", QueryCode: "AccessDenied",
				Message: "The operation autoscaling:" + r.Action + " is not permitted on resource: " + s.resource(r) +
					" because it is managed by the operator " + operator + ".",
			}
		}
		if s.isContended() {
			return nil, contention(s.subject(r))
		}
		return action(ctx, r)
	}
}

func (s *State) operator(groupName string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[groupName]; g != nil {
		return g.Operator
	}
	return ""
}

// subject is the name of the group that a request wants to change.
func (s *State) subject(r *wire.Request) string {
	if name := r.Value("AutoScalingGroupName"); name != "" {
		return name
	}
	if m, ok := s.Member(r.Value("InstanceId")); ok {
		return m.Group
	}
	return r.Value("Tags.member.1.ResourceId")
}

// resource is the ARN of the group that a request wants to change; reading is not
// limited to groups.
func (s *State) resource(r *wire.Request) string {
	if len(r.Action) > 8 && r.Action[:8] == "Describe" {
		return ""
	}
	return s.GroupARN(s.subject(r))
}

// draws are the tokens that a call takes: one of a bucket that all calls share (Amazon EC2 Auto Scaling
// API Reference, "API request rate"). AWS does not publish its size; this is that of EC2's reads.
func draws(*wire.Request) []wire.Draw {
	return []wire.Draw{{Bucket: "all calls", PerSecond: 20, Burst: 100}}
}
