// Package autoscaling makes notices of the instances that EC2 Auto Scaling is
// about to terminate: the second way in for lifecycle actions, which
// EventBridge carries on a best-effort basis.
//
// It reads what groupwatch knows of the groups, whenever that has looked at
// them, and asks AWS nothing itself.
package autoscaling

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceAutoScaling
