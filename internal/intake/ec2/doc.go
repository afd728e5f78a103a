// Package ec2 asks EC2 what it is about to do to instances: spot requests that
// are marked for termination, scheduled events, status checks that fail. It is
// the second way in for what EventBridge brings, and the only one for status
// checks.
//
// The questions are put so that only what matters comes back: however large the
// account, a round is a handful of calls with few rows. They are asked on the
// leader alone.
package ec2

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceEC2
