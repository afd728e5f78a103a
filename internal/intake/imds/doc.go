// Package imds hears what an instance's own metadata tells about it: the way in
// that needs no queue, no rule and no permission, and the only one that knows
// the exact moment of a spot interruption.
//
// It runs on the node, reads IMDSv2 every few seconds, and speaks of that one
// node alone. What is asked for stands in paths.go.
package imds

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceIMDS
