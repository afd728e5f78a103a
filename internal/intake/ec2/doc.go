// Package ec2 polls EC2 for upcoming changes of instances: spot requests that
// are marked for termination, scheduled events and failing status checks. It is
// the fallback for EventBridge, and the only source for status checks.
//
// The filters return only relevant rows: a round is a handful of calls with few
// rows, regardless of the account's size. Only the leader polls.
package ec2

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceEC2
