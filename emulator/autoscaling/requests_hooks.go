package autoscaling

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type hooksInput struct {
	Group string   `query:"AutoScalingGroupName"`
	Names []string `query:"LifecycleHookNames"`
}

type hooksReply struct {
	Hooks wire.Members[hookReply] `xml:"LifecycleHooks"`
}

func (a *api) describeHooks(_ context.Context, _ *wire.Request, in *hooksInput) (*hooksReply, error) {
	list, err := a.state.Hooks(in.Group, in.Names)
	out := &hooksReply{}
	for _, h := range list {
		out.Hooks = append(out.Hooks, hookToWire(h))
	}
	return out, err
}

type hookInput struct {
	Group            string `query:"AutoScalingGroupName"`
	Name             string `query:"LifecycleHookName"`
	Transition       string `query:"LifecycleTransition"`
	DefaultResult    Result
	HeartbeatTimeout *int
	Target           *string `query:"NotificationTargetARN"`
	RoleARN          string
	Metadata         *string `query:"NotificationMetadata"`
}

var hookName = regexp.MustCompile(`^[A-Za-z0-9\-_/]{1,255}$`)

// hook applies a request to the existing hook. Bounds as in the Amazon EC2 Auto Scaling API
// Reference, PutLifecycleHook.
func (in *hookInput) hook(groupName string, was Hook) (Hook, error) {
	h := was
	h.Name, h.Group = in.Name, groupName
	if in.Transition != "" {
		h.Transition = LifecycleTransition(in.Transition)
	}
	if in.DefaultResult != "" {
		h.DefaultResult = in.DefaultResult
	}
	seconds(&h.Heartbeat, in.HeartbeatTimeout)
	given(&h.NotificationTarget, in.Target)
	given(&h.Metadata, in.Metadata)
	if in.RoleARN != "" {
		h.RoleARN = in.RoleARN
	}
	switch {
	case !hookName.MatchString(h.Name):
		return h, constraint(h.Name, "lifecycleHookName", `satisfy regular expression pattern: [A-Za-z0-9\-_\/]+`)
	case h.Transition == "":
		return h, validation("Lifecycle Transition is required when creating a new Lifecycle Hook")
	case h.DefaultResult != "" && h.DefaultResult != Continue && h.DefaultResult != Abandon:
		return h, validation("Invalid default result '%s'; use CONTINUE or ABANDON", h.DefaultResult)
	case in.HeartbeatTimeout != nil && (h.Heartbeat < minHeartbeat || h.Heartbeat > maxHeartbeat):
		return h, constraint(*in.HeartbeatTimeout, "heartbeatTimeout", fmt.Sprintf("have value between %d and %d", minHeartbeat/time.Second, maxHeartbeat/time.Second))
	case strings.HasSuffix(h.NotificationTarget, ".fifo"):
		return h, validation("FIFO queues are not supported as notification targets: %s", h.NotificationTarget)
	default:
		return h, nil
	}
}

func (a *api) putHook(_ context.Context, _ *wire.Request, in *hookInput) (*wire.None, error) {
	list, err := a.state.Hooks(in.Group, []string{in.Name})
	if err != nil {
		return nil, err
	}
	was := Hook{}
	if len(list) > 0 {
		was = list[0]
	}
	h, err := in.hook(in.Group, was)
	if err != nil {
		return nil, err
	}
	return &wire.None{}, a.state.PutHook(h)
}

func (a *api) deleteHook(_ context.Context, _ *wire.Request, in *hookInput) (*wire.None, error) {
	return &wire.None{}, a.state.DeleteHook(in.Group, in.Name)
}

type poolInput struct {
	paging

	Group string `query:"AutoScalingGroupName"`
}

type poolReply struct {
	Configuration *poolConfiguration          `xml:"WarmPoolConfiguration"`
	Instances     wire.Members[instanceReply] `xml:"Instances"`
	NextToken     string                      `xml:",omitempty"`
}

func (a *api) describePool(_ context.Context, _ *wire.Request, in *poolInput) (*poolReply, error) {
	list := a.state.describe()
	i := slices.IndexFunc(list, func(g described) bool { return g.Name == in.Group })
	if i < 0 {
		return nil, groupNotFound(in.Group)
	}
	out := &poolReply{Configuration: poolToWire(list[i])}
	var warm []instanceReply
	for _, m := range list[i].members {
		if m.State.warm() {
			warm = append(warm, memberToWire(list[i], m, ""))
		}
	}
	var err error
	out.Instances, out.NextToken, err = page(warm, in.paging, maxOthers)
	return out, err
}

type putPoolInput struct {
	Group       string `query:"AutoScalingGroupName"`
	MaxPrepared *int   `query:"MaxGroupPreparedCapacity"`
	MinSize     int
	PoolState   string
	Reuse       *struct{ ReuseOnScaleIn bool } `query:"InstanceReusePolicy"`
}

// putPool keeps the prepared capacity, the state and the reuse policy of the pool where the request
// omits them; -1 resets the prepared capacity.
func (a *api) putPool(_ context.Context, _ *wire.Request, in *putPoolInput) (*wire.None, error) {
	p, err := a.state.Pool(in.Group)
	if err != nil {
		return nil, err
	}
	p.MinSize = in.MinSize
	if in.PoolState != "" {
		p.State = LifecycleState("Warmed:" + in.PoolState)
	}
	if in.Reuse != nil {
		p.ReuseOnScaleIn = in.Reuse.ReuseOnScaleIn
	}
	if in.MaxPrepared != nil {
		p.MaxPrepared = in.MaxPrepared
		if *in.MaxPrepared == -1 {
			p.MaxPrepared = nil
		}
	}
	return &wire.None{}, a.state.PutPool(in.Group, p)
}

func (a *api) deletePool(_ context.Context, _ *wire.Request, in *deleteInput) (*wire.None, error) {
	return &wire.None{}, a.state.DeletePool(in.Group, in.Force)
}
