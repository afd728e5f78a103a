package machines

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Tags of an instance with the durations of its boot.
const (
	// TagBootTime is the time from the launch, or the start, until programs run on the instance,
	// such as 20s; otherwise that of Options.BootDelay.
	TagBootTime = "lifeboat.dev/boot-time"
	// TagPrepareTime is the duration of the one-time preparation of its disk, such as image pulls,
	// before its kubelet runs; unused if its user data starts no agent.
	TagPrepareTime = "lifeboat.dev/prepare-time"
)

// bootCommand is the agent command that delays the kubelet, as user data or a unit in it starts it,
// with its flags.
var bootCommand = regexp.MustCompile(`\blifeboatd agent boot((?:[ \t]+--[a-z-]+(?:=\S*)?)*)`)

// BootAgent reads from an instance's user data whether Lifeboat's agent starts its
// kubelet, and the agent's flags.
func BootAgent(in ec2.Instance) (flags []string, ok bool) {
	text, err := base64.StdEncoding.DecodeString(in.UserData)
	if err != nil {
		return nil, false
	}
	m := bootCommand.FindStringSubmatch(string(text))
	if m == nil {
		return nil, false
	}
	return strings.Fields(m[1]), true
}

// BootTime is the boot time of an instance: its tag or, without one, the default.
func BootTime(in ec2.Instance, otherwise time.Duration) (time.Duration, error) {
	return taggedTime(in, TagBootTime, otherwise)
}

// PrepareTime is the duration of an instance's preparation before its kubelet runs.
func PrepareTime(in ec2.Instance) (time.Duration, error) { return taggedTime(in, TagPrepareTime, 0) }

func taggedTime(in ec2.Instance, tag string, otherwise time.Duration) (time.Duration, error) {
	text, ok := in.Tags[tag]
	if !ok {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return otherwise, fmt.Errorf("instance %s: tag %s is %q: write a duration such as 20s", in.ID, tag, text)
	}
	return d, nil
}
