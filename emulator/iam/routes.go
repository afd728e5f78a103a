package iam

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is IAM on the wire. It is global: requests are signed for us-east-1, wherever
// the rest of the account is.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "iam",
		Protocol:     wire.Query,
		XMLNamespace: "https://iam.amazonaws.com/doc/2010-05-08/",
		AnyRegion:    true,
		Resource:     s.resource,
		Actions: map[string]wire.Action{
			"AddRoleToInstanceProfile":      wire.Do(a.addRole),
			"CreateInstanceProfile":         wire.Do(a.createProfile),
			"CreateRole":                    wire.Do(a.createRole),
			"DeleteInstanceProfile":         wire.Do(a.deleteProfile),
			"DeleteRole":                    wire.Do(a.deleteRole),
			"DeleteRolePolicy":              wire.Do(a.deleteRolePolicy),
			"GetInstanceProfile":            wire.Do(a.getProfile),
			"GetRole":                       wire.Do(a.getRole),
			"GetRolePolicy":                 wire.Do(a.getRolePolicy),
			"ListInstanceProfileTags":       wire.Do(a.listTags),
			"ListInstanceProfiles":          wire.Do(a.listProfiles),
			"PutRolePolicy":                 wire.Do(a.putRolePolicy),
			"RemoveRoleFromInstanceProfile": wire.Do(a.removeRole),
			"TagInstanceProfile":            wire.Do(a.tagProfile),
			"UntagInstanceProfile":          wire.Do(a.untagProfile),
			"UpdateAssumeRolePolicy":        wire.Do(a.updateTrust),
		},
	}
}

// resource is the ARN of a request's resource.
func (s *State) resource(r *wire.Request) string {
	for _, of := range []struct{ member, resource string }{{"InstanceProfileName", "instance-profile"}, {"RoleName", "role"}} {
		if name := r.Value(of.member); name != "" {
			return fmt.Sprintf("arn:%s:iam::%s:%s/%s", s.scope.Partition(), s.scope.Account, of.resource, name)
		}
	}
	return ""
}
