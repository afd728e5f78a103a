package ssm

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is Systems Manager on the wire.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "ssm",
		Protocol:     wire.JSON11,
		TargetPrefix: "AmazonSSM",
		Resource: func(r *wire.Request) string {
			return s.scope.ARN("ssm", "parameter/"+strings.TrimPrefix(r.Value("Name"), "/"))
		},
		Actions: map[string]wire.Action{
			"GetParameter":  wire.Do(a.getParameter),
			"GetParameters": wire.Do(a.getParameters),
		},
	}
}
