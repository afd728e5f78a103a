package sts

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// Service is STS on the wire. Like the global endpoint, it takes credentials
// of any region.
func Service(s *State) wire.Service {
	a := &api{state: s, scope: s.scope}
	return wire.Service{
		Name:         "sts",
		Protocol:     wire.Query,
		XMLNamespace: "https://sts.amazonaws.com/doc/2011-06-15/",
		AnyRegion:    true,
		Actions: map[string]wire.Action{
			"AssumeRole":        wire.Do(a.assumeRole),
			"GetCallerIdentity": wire.Do(a.getCallerIdentity),
			"GetSessionToken":   wire.Do(a.getSessionToken),
		},
	}
}
