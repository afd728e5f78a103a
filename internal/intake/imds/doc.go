// Package imds reads notices from the instance's own metadata. It needs no
// queue, no rule and no permission, and it alone gets the exact time of a spot
// interruption.
//
// It runs on the node and polls IMDSv2 every few seconds. It writes one object,
// the NodeNotice of its node, which internal/intake/nodenotice reads. paths.go
// lists what it reads.
package imds

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceIMDS
