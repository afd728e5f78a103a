package aws

import (
	"cmp"
	"slices"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Hooks reads the lifecycle hooks of a group, sorted by name (Amazon EC2 Auto Scaling API
// Reference, LifecycleHook). The default result is ABANDON unless it is given.
func Hooks(rows []types.LifecycleHook) []lifecycle.Hook {
	seconds := func(n *int32) time.Duration { return time.Duration(awssdk.ToInt32(n)) * time.Second }
	hooks := make([]lifecycle.Hook, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		hooks = append(hooks, lifecycle.Hook{
			Name: awssdk.ToString(row.LifecycleHookName), Terminating: awssdk.ToString(row.LifecycleTransition) == "autoscaling:EC2_INSTANCE_TERMINATING",
			Timeout: seconds(row.HeartbeatTimeout), Global: seconds(row.GlobalTimeout), Abandons: awssdk.ToString(row.DefaultResult) != "CONTINUE",
		})
	}
	slices.SortFunc(hooks, func(a, b lifecycle.Hook) int { return cmp.Compare(a.Name, b.Name) })
	return hooks
}
