// Package autoscaling asks EC2 Auto Scaling which instances its groups are
// about to terminate: the second way in for lifecycle actions, which
// EventBridge carries on a best-effort basis.
//
// Which groups concern the cluster is learned once, from its nodes; after that
// a call tells of a hundred groups with all their instances. It is asked on the
// leader alone.
package autoscaling

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceAutoScaling
