// Package autoscaling reports instances that EC2 Auto Scaling is about to
// terminate. It is the fallback for lifecycle events, which EventBridge
// delivers best effort.
//
// It reads the groups that groupwatch has cached, after each refresh, and makes
// no AWS calls.
package autoscaling

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceAutoScaling
