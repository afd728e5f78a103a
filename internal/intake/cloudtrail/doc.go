// Package cloudtrail reports calls that complete a lifecycle action and that AWS refused. It reads
// CloudTrail's event history, which every account has, with and without a trail.
package cloudtrail

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceCloudTrail
