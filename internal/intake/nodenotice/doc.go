// Package nodenotice records what the agents of nodes read in instance metadata.
//
// Each agent writes one NodeNotice, that of its node. This source watches them,
// verifies each one against the cluster, and records its notices in the
// Interruption of the instance. An agent is not trusted further than that: its
// clock orders nothing, and it cannot name another instance.
package nodenotice

import "github.com/lifeboat-dev/lifeboat/internal/notice"

// Name is the name of this source in notices, metrics and logs.
const Name = notice.SourceIMDS
